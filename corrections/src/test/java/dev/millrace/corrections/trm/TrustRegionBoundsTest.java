package dev.millrace.corrections.trm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

class TrustRegionBoundsTest {
    private static final int LENGTH = 4096;
    private static final double DELTA = 1e-4;

    @Test
    void shouldLeaveNoRoomForACertificateAtTheDefaultBound() {
        double delta = ExactTrustRegionMask.defaults().maxTokenKl();
        assertThat(TrustRegionBounds.pinskerMarginal(6, delta)).isLessThan(1);
        assertThat(TrustRegionBounds.pinskerMarginal(7, delta)).isGreaterThan(1);
    }

    @Test
    void shouldGiveThePublishedNumbers() {
        assertThat(TrustRegionBounds.trpo(LENGTH, DELTA)).isCloseTo(1677, within(0.5));
        assertThat(TrustRegionBounds.pinskerMarginal(LENGTH, DELTA)).isCloseTo(35.0, within(0.05));
        assertThat(TrustRegionBounds.mixed(LENGTH, DELTA, 0.01)).isCloseTo(8.2, within(0.05));
    }

    @Test
    void shouldBeZeroOnPolicy() {
        assertThat(TrustRegionBounds.trpo(LENGTH, 0)).isZero();
        assertThat(TrustRegionBounds.mixed(LENGTH, DELTA, 0)).isZero();
        assertThat(TrustRegionBounds.adaptive(new double[LENGTH], DELTA, 1)).isZero();
    }

    @Test
    void shouldAdaptToWhereTheDivergenceIs() {
        // T = 3, epsilon = 0.3: future 0.6, 0.3, 0
        assertThat(TrustRegionBounds.adaptive(new double[] {0.1, 0.2, 0.5}, Double.POSITIVE_INFINITY, 0.3))
                .isCloseTo(4 * (0.06 + 0.06), within(1e-12));
        // delta = 0.08: futures sqrt(0.08), sqrt(0.04), 0
        assertThat(TrustRegionBounds.adaptive(new double[] {0.1, 0.2, 0.5}, 0.08, 1))
                .isCloseTo(4 * (0.1 * Math.sqrt(0.08) + 0.2 * 0.2), within(1e-12));
    }

    @Test
    void shouldNeverBeLooserThanPinskerMarginalInTheWorstCase() {
        double[] worst = new double[LENGTH];
        Arrays.fill(worst, Math.sqrt(DELTA / 2));
        double adaptive = TrustRegionBounds.adaptive(worst, DELTA, 1);

        assertThat(adaptive).isLessThanOrEqualTo(TrustRegionBounds.pinskerMarginal(LENGTH, DELTA));
        assertThat(adaptive).isCloseTo(TrustRegionBounds.pinskerMarginal(LENGTH, DELTA), within(0.01));
    }

    @Test
    void shouldTakeTheSmallest() {
        assertThat(TrustRegionBounds.smallest(3, 1, 2)).isEqualTo(1);
    }

    @Test
    void shouldBoundTheErrorOfEveryTwoStepProblem() {
        Random random = new Random(11);
        for (int round = 0; round < 300; round++) {
            TwoSteps problem = new TwoSteps(random);
            assertThat(problem.error())
                    .isLessThanOrEqualTo(TrustRegionBounds.trpo(2, problem.largestKl()) + 1e-12)
                    .isLessThanOrEqualTo(TrustRegionBounds.pinskerMarginal(2, problem.largestKl()) + 1e-12)
                    .isLessThanOrEqualTo(TrustRegionBounds.mixed(2, problem.largestKl(), problem.sequenceKl()) + 1e-12)
                    .isLessThanOrEqualTo(
                            TrustRegionBounds.adaptive(problem.meanTv(), problem.largestKl(), problem.largestTv())
                                    + 1e-12);
        }
    }

    @Test
    void shouldRefuseWhatIsNoDivergence() {
        assertThatThrownBy(() -> TrustRegionBounds.trpo(0, 1)).hasMessageContaining("length=0");
        assertThatThrownBy(() -> TrustRegionBounds.trpo(1, Double.NaN)).hasMessageContaining("delta=NaN");
        assertThatThrownBy(() -> TrustRegionBounds.mixed(1, 1, -1)).hasMessageContaining("sequenceKl=-1.0");
        assertThatThrownBy(() -> TrustRegionBounds.adaptive(new double[] {1.5}, 1, 1))
                .hasMessageContaining("position=1");
        assertThatThrownBy(() -> TrustRegionBounds.adaptive(new double[1], Double.NaN, 1))
                .hasMessageContaining("delta=NaN");
    }

    @Test
    void shouldEstimateTotalVariationByPosition() {
        TokenBatch batch = new TokenBatch(new int[] {0, 3, 4, 4}, new byte[] {1, 0, 1, 1});
        float log2 = (float) Math.log(2);
        double[] mean = PositionalTotalVariation.estimate(
                batch, LogRatio.full(new float[] {log2, Float.NaN, -log2, 0f}, new float[4]));

        // position 1: (1 + 0) / 2 sequences / 2; position 2: 0.5 / 2 / 2
        assertThat(mean).hasSize(2);
        assertThat(mean[0]).isCloseTo(0.25, within(1e-7));
        assertThat(mean[1]).isCloseTo(0.125, within(1e-7));
        assertThat(PositionalTotalVariation.estimate(
                        new TokenBatch(new int[] {0}, new byte[0]), LogRatio.full(new float[0], new float[0])))
                .isEmpty();
    }

    /** Two binary actions, a reward in [0, 1] for each outcome: everything can be enumerated. */
    private static final class TwoSteps {
        private final double[][] behavior = new double[3][2];
        private final double[][] current = new double[3][2];
        private final double[][] reward = new double[2][2];

        TwoSteps(Random random) {
            for (int c = 0; c < 3; c++) {
                double p = 0.05 + 0.9 * random.nextDouble();
                double q = Math.max(0.02, Math.min(0.98, p + 0.3 * random.nextGaussian()));
                behavior[c] = new double[] {p, 1 - p};
                current[c] = new double[] {q, 1 - q};
            }
            for (double[] row : reward) {
                Arrays.setAll(row, i -> random.nextInt(3) / 2.0);
            }
        }

        /** |J(current) - J(behavior) - E_behavior[R sum_t (rho_t - 1)]|. */
        double error() {
            double error = 0;
            for (int a = 0; a < 2; a++) {
                for (int b = 0; b < 2; b++) {
                    double first = current[0][a] / behavior[0][a];
                    double second = current[1 + a][b] / behavior[1 + a][b];
                    double linear = first - 1 + second - 1;
                    error += behavior[0][a] * behavior[1 + a][b] * reward[a][b] * (first * second - 1 - linear);
                }
            }
            return Math.abs(error);
        }

        double kl(int context) {
            return behavior[context][0] * Math.log(behavior[context][0] / current[context][0])
                    + behavior[context][1] * Math.log(behavior[context][1] / current[context][1]);
        }

        double tv(int context) {
            return Math.abs(behavior[context][0] - current[context][0]);
        }

        double largestKl() {
            return Math.max(kl(0), Math.max(kl(1), kl(2)));
        }

        double largestTv() {
            return Math.max(tv(0), Math.max(tv(1), tv(2)));
        }

        double sequenceKl() {
            return kl(0) + behavior[0][0] * kl(1) + behavior[0][1] * kl(2);
        }

        double[] meanTv() {
            return new double[] {tv(0), behavior[0][0] * tv(1) + behavior[0][1] * tv(2)};
        }
    }
}
