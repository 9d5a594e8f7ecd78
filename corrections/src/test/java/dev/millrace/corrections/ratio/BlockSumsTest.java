package dev.millrace.corrections.ratio;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.Random;
import org.junit.jupiter.api.Test;

class BlockSumsTest {
    @Test
    void shouldAgreeWithPlainLoopsAtEveryLength() {
        Random random = new Random(5);
        for (int n = 0; n <= 40; n++) {
            double[] x = new double[41];
            for (int i = 0; i < x.length; i++) {
                x[i] = random.nextInt(4) == 0 ? 0.25 : random.nextGaussian();
            }
            double sum = 0;
            double squares = 0;
            double max = Double.NEGATIVE_INFINITY;
            int above = 0;
            int below = 0;
            for (int i = 0; i < n; i++) {
                sum += x[i];
                squares += x[i] * x[i];
                max = Math.max(max, x[i]);
                above += x[i] > 0.25 ? 1 : 0;
                below += x[i] < 0.25 ? 1 : 0;
            }
            assertThat(BlockSums.sum(x, n)).isCloseTo(sum, within(1e-12));
            assertThat(BlockSums.sumOfSquares(x, n)).isCloseTo(squares, within(1e-12));
            assertThat(BlockSums.max(x, n)).isEqualTo(max);
            assertThat(BlockSums.countAbove(x, n, 0.25)).isEqualTo(above);
            assertThat(BlockSums.countBelow(x, n, 0.25)).isEqualTo(below);
        }
    }

    @Test
    void shouldNotCountWhatIsOnTheBound() {
        double[] x = {0.0, -0.0, Math.nextUp(0.0), Math.nextDown(0.0), 0.7, Math.nextUp(0.7)};

        assertThat(BlockSums.countAbove(x, 4, 0.0)).isEqualTo(1);
        assertThat(BlockSums.countBelow(x, 4, 0.0)).isEqualTo(1);
        assertThat(BlockSums.countAbove(x, 6, 0.7)).isEqualTo(1);
    }

    @Test
    void shouldSeeAMagnitudeBeyondTheBoundAndNoneOnIt() {
        for (int at = 0; at < 11; at++) {
            double[] x = new double[11];
            java.util.Arrays.fill(x, -20.0);
            assertThat(BlockSums.exceeds(x, 11, 20.0)).isFalse();
            x[at] = Math.nextUp(20.0);
            assertThat(BlockSums.exceeds(x, 11, 20.0)).isTrue();
            assertThat(BlockSums.exceeds(x, at, 20.0)).isFalse();
            x[at] = Math.nextDown(-20.0);
            assertThat(BlockSums.exceeds(x, at + 1, 20.0)).isTrue();
        }
    }

    @Test
    void shouldSeeOneElementThatIsNotTheFirst() {
        for (int at = 1; at < 11; at++) {
            double[] x = new double[11];
            java.util.Arrays.fill(x, 0.1);
            assertThat(BlockSums.varies(x, 11)).isFalse();
            x[at] = Math.nextUp(0.1);
            assertThat(BlockSums.varies(x, 11)).isTrue();
            assertThat(BlockSums.varies(x, at)).isFalse();
        }
        assertThat(BlockSums.varies(new double[0], 0)).isFalse();
    }
}
