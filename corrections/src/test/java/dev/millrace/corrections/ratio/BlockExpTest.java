package dev.millrace.corrections.ratio;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;

class BlockExpTest {
    private static final int N = 4096;

    private final double[] x = new double[N];
    private final double[] expm1 = new double[N];
    private final double[] exp = new double[N];

    @Test
    void shouldStayWithinItsErrorBoundsOverTheWholeRange() {
        Random random = new Random(7);
        for (int round = 0; round < 60; round++) {
            double scale = Math.pow(10, -round % 12); // down to 2e-11, where e^x - 1 would cancel
            for (int i = 0; i < N; i++) {
                x[i] = (2 * random.nextDouble() - 1) * BlockExp.RANGE * scale;
            }
            x[0] = -BlockExp.RANGE * scale;
            x[1] = BlockExp.RANGE * scale;

            BlockExp.both(x, expm1, exp, N);
            requireWithinBounds();
            BlockExp.exp(x, expm1, exp, N);
            BlockExp.both(x, expm1, new double[N], N); // exp took it for scratch
            requireWithinBounds();
            if (BlockExp.RANGE * scale <= BlockExp.SMALL) {
                BlockExp.bothOfSmall(x, expm1, exp, N);
                requireWithinBounds();
            }
        }
    }

    @Test
    void shouldStayWithinThemToTheEndOfTheSmallOnes() {
        for (int i = 0; i < N; i++) {
            x[i] = BlockExp.SMALL * (2.0 * i / (N - 1) - 1);
        }
        BlockExp.bothOfSmall(x, expm1, exp, N);
        requireWithinBounds();
    }

    private void requireWithinBounds() {
        for (int i = 0; i < N; i++) {
            double trueExp = StrictMath.exp(x[i]);
            double trueExpm1 = StrictMath.expm1(x[i]);
            assertThat(Math.abs(exp[i] - trueExp)).isLessThanOrEqualTo(BlockExp.EXP_RELATIVE_ERROR * trueExp);
            assertThat(Math.abs(expm1[i] - trueExpm1))
                    .isLessThanOrEqualTo(BlockExp.EXPM1_RELATIVE_ERROR * Math.abs(trueExpm1));
        }
    }

    @Test
    void shouldBeExactAtZero() {
        BlockExp.both(x, expm1, exp, 3);

        assertThat(exp).startsWith(1, 1, 1).endsWith(0);
        assertThat(expm1).startsWith(0, 0, 0);
    }

    @Test
    void shouldNotDependOnThePositionInTheBlock() {
        Random random = new Random(8);
        for (int i = 0; i < N; i++) {
            x[i] = 3 * random.nextGaussian();
        }
        BlockExp.both(x, expm1, exp, N);
        double[] one = new double[1];
        double[] oneExpm1 = new double[1];
        double[] oneExp = new double[1];
        for (int i = 0; i < N; i++) {
            one[0] = x[i];
            BlockExp.both(one, oneExpm1, oneExp, 1);
            assertThat(oneExp[0]).isEqualTo(exp[i]);
            assertThat(oneExpm1[0]).isEqualTo(expm1[i]);
        }
    }
}
