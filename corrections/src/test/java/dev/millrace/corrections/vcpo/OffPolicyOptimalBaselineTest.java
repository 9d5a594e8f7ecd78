package dev.millrace.corrections.vcpo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.vcpo.OffPolicyOptimalBaseline.Scope;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

class OffPolicyOptimalBaselineTest {
    private static final OffPolicyOptimalBaseline PLAIN =
            new OffPolicyOptimalBaseline(Scope.GROUP, WeightedAverage.MEAN, false, false);

    /** Sequences of one trained token each, in the given groups. */
    private static TokenBatch groups(int... groups) {
        byte[] mask = new byte[groups.length];
        Arrays.fill(mask, (byte) 1);
        int[] offsets = new int[groups.length + 1];
        Arrays.setAll(offsets, i -> i);
        return new TokenBatch(offsets, mask, groups);
    }

    @Test
    void shouldWeighReturnsBySquaredNormAndSquaredWeight() {
        // group 0: weights 1 and 4 * 0.25 = 1; group 1: weights 9 and 1
        double[] advantages = new double[4];
        double[] baselines = PLAIN.compute(
                groups(0, 0, 1, 1),
                new double[] {1, 0, 1, 0},
                new double[] {1, 2, 3, 1},
                new double[] {0, Math.log(0.5), 0, 0},
                advantages);

        assertThat(baselines[0]).isCloseTo(0.5, within(1e-15));
        assertThat(baselines[1]).isCloseTo(0.9, within(1e-15));
        assertThat(advantages[0]).isCloseTo(0.5, within(1e-15));
        assertThat(advantages[3]).isCloseTo(-0.9, within(1e-15));
    }

    @Test
    void shouldBeTheGroupMeanForEqualNormsOnPolicy() {
        double[] advantages = new double[3];
        assertThat(PLAIN.compute(
                        groups(0, 0, 0), new double[] {1, 2, 6}, new double[] {5, 5, 5}, new double[3], advantages))
                .containsExactly(3.0);
        assertThat(advantages).containsExactly(-2, -1, 3);
    }

    @Test
    void shouldTakeOneBaselineOverTheBatch() {
        double[] advantages = new double[3];
        assertThat(new OffPolicyOptimalBaseline(Scope.BATCH, WeightedAverage.MEAN, false, false)
                        .compute(
                                groups(0, 1, 2),
                                new double[] {1, 2, 6},
                                new double[] {1, 1, 1},
                                new double[3],
                                advantages))
                .containsExactly(3.0);
    }

    @Test
    void shouldDivideWeightsBySquaredLengthAndAdvantagesByDeviation() {
        TokenBatch lengths = new TokenBatch(new int[] {0, 1, 3}, new byte[] {1, 1, 1}, new int[] {0, 0});
        double[] advantages = new double[2];
        double[] baselines = new OffPolicyOptimalBaseline(Scope.GROUP, WeightedAverage.MEAN, true, true)
                .compute(lengths, new double[] {1, 0}, new double[] {1, 2}, new double[2], advantages);

        assertThat(baselines[0]).isCloseTo(0.5, within(1e-15));
        assertThat(advantages[0]).isCloseTo(1.0, within(1e-15));
        assertThat(advantages[1]).isCloseTo(-1.0, within(1e-15));
    }

    @Test
    void shouldGiveZeroAdvantagesWhenAllReturnsAreEqual() {
        double[] advantages = {7, 7};
        new OffPolicyOptimalBaseline(Scope.GROUP, WeightedAverage.MEAN, false, true)
                .compute(groups(0, 0), new double[] {0.1, 0.1}, new double[] {1, 3}, new double[2], advantages);

        assertThat(advantages).containsExactly(0.0, 0.0);
    }

    @Test
    void shouldTakeWeightedMedianAndWinsorizedMean() {
        double[] values = {5, 1, 100, 2};
        double[] weights = {1, 1, 1, 1};

        assertThat(WeightedAverage.MEDIAN.of(values, weights, 0)).isEqualTo(2.0);
        assertThat(WeightedAverage.MEDIAN.of(values, new double[] {5, 1, 1, 1}, 0))
                .isEqualTo(5.0);
        // 5 % of 100 lies on the second value, 95 % on the last but one
        assertThat(WeightedAverage.WINSORIZED_MEAN.of(new double[] {-1000, 1, 2, 1000}, new double[] {4, 46, 46, 4}, 0))
                .isCloseTo(0.04 * 1 + 0.46 * 1 + 0.46 * 2 + 0.04 * 2, within(1e-12));
        assertThat(WeightedAverage.MEDIAN.of(values, new double[4], 0)).isZero();
        assertThat(WeightedAverage.MEAN.of(new double[0], new double[0], 0)).isZero();
    }

    @Test
    void shouldNotOverflowOrDependOnScale() {
        double[] advantages = new double[2];
        double[] returns = {1, 0};
        double expected = PLAIN.compute(groups(0, 0), returns, new double[] {1, 2}, new double[] {0, 1}, advantages)[0];

        assertThat(PLAIN.compute(
                                groups(0, 0),
                                returns,
                                new double[] {1e-200, 2e-200},
                                new double[] {900, 901},
                                advantages)[0])
                .isCloseTo(expected, within(1e-10));
    }

    @Test
    void shouldGiveLeastVarianceAmongBaselines() {
        Random random = new Random(1);
        for (int round = 0; round < 50; round++) {
            double[] returns = random.doubles(6).toArray();
            double[] norms = random.doubles(6).map(u -> 0.1 + u).toArray();
            double[] logWeights = random.doubles(6).map(u -> 2 * u - 1).toArray();
            double best = PLAIN.compute(groups(0, 0, 0, 0, 0, 0), returns, norms, logWeights, new double[6])[0];

            for (double other : new double[] {best - 0.1, best + 0.1}) {
                assertThat(secondMoment(returns, norms, logWeights, best))
                        .isLessThan(secondMoment(returns, norms, logWeights, other));
            }
        }
    }

    private static double secondMoment(double[] returns, double[] norms, double[] logWeights, double baseline) {
        double sum = 0;
        for (int i = 0; i < returns.length; i++) {
            sum += Math.pow(norms[i] * Math.exp(logWeights[i]) * (returns[i] - baseline), 2);
        }
        return sum;
    }

    @Test
    void shouldLeaveOutSequencesWithoutTrainedTokens() {
        TokenBatch batch = new TokenBatch(new int[] {0, 1, 2, 2}, new byte[] {1, 0}, new int[] {0, 0, 2});
        double[] advantages = {9, 9, 9};
        double[] baselines = PLAIN.compute(
                batch,
                new double[] {4, Double.NaN, 1},
                new double[] {1, -1, 1},
                new double[] {0, Double.NaN, 0},
                advantages);

        assertThat(baselines).containsExactly(4.0, 0.0, 0.0);
        assertThat(advantages).containsExactly(0.0, 0.0, 0.0);
    }

    @Test
    void shouldReturnZeroBaselineWhereNothingHasAGradient() {
        double[] advantages = new double[2];
        assertThat(PLAIN.compute(groups(0, 0), new double[] {1, 2}, new double[2], new double[2], advantages))
                .containsExactly(0.0);
    }

    @Test
    void shouldRefuseWhatHasNoBaseline() {
        assertThatThrownBy(() -> PLAIN.compute(
                        groups(0, 0), new double[] {1, Double.NaN}, new double[2], new double[2], new double[2]))
                .hasMessageContaining("returns")
                .hasMessageContaining("sequence=1");
        assertThatThrownBy(() ->
                        PLAIN.compute(groups(0, 0), new double[2], new double[] {1, -1}, new double[2], new double[2]))
                .hasMessageContaining("gradient norm");
        assertThatThrownBy(
                        () -> PLAIN.compute(groups(0, 0), new double[2], new double[1], new double[2], new double[2]))
                .hasMessageContaining("length=1, sequences=2");
    }
}
