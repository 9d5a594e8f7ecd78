package dev.millrace.corrections.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.RandomBatches;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class WeightMethodsTest {
    /** Ratios 2, 0.5, (context), 3, 4 of one sequence: two turns of two tokens each. */
    private static final TokenBatch TURNS = new TokenBatch(new int[] {0, 5}, new byte[] {1, 1, 0, 1, 1});

    private static final double[] RATIOS = {2, 0.5, Double.NaN, 3, 4};

    private static LogRatio ratios(double... ratios) {
        float[] target = new float[ratios.length];
        for (int t = 0; t < ratios.length; t++) {
            target[t] = (float) Math.log(ratios[t]);
        }
        return LogRatio.full(target, new float[ratios.length]);
    }

    private static float[] weigh(WeightMethod method) {
        float[] weights = new float[5];
        Arrays.fill(weights, 9f);
        method.compute(TURNS, ratios(RATIOS), weights);
        return weights;
    }

    private static float[] near(double... expected) {
        float[] floats = new float[expected.length];
        for (int t = 0; t < expected.length; t++) {
            floats[t] = (float) expected[t];
        }
        return floats;
    }

    @Test
    void shouldMaskTokensOutsideTheBand() {
        assertThat(weigh(new TokenBandWeights(0.6, 3.5))).containsExactly(near(2, 0, 0, 3, 0), within(1e-6f));
    }

    @Test
    void shouldKeepTokensOnTheEdgeOfTheBand() {
        float[] weights = new float[1];
        WeightSummary summary = new TokenBandWeights(1, 1)
                .compute(new TokenBatch(new int[] {0, 1}, new byte[] {1}), ratios(1), weights);

        assertThat(weights).containsExactly(1f);
        assertThat(summary.maskedTokens()).isZero();
    }

    @Test
    void shouldMaskSequencesWhoseProductIsOutsideTheBand() {
        // 2 * 0.5 * 3 * 4 = 12
        assertThat(weigh(new SequenceBandWeights(0.5, 13))).containsExactly(near(12, 12, 0, 12, 12), within(1e-5f));
        assertThat(weigh(new SequenceBandWeights(0.5, 11))).containsOnly(0f);
    }

    @Test
    void shouldTakeTheGeometricMeanOfASequence() {
        double mean = Math.pow(12, 0.25);
        assertThat(weigh(new GeometricSequenceWeights(5, false)))
                .containsExactly(near(mean, mean, 0, mean, mean), within(1e-6f));
        assertThat(weigh(new GeometricSequenceWeights(1.5, false)))
                .containsExactly(near(1.5, 1.5, 0, 1.5, 1.5), within(1e-6f));
    }

    @Test
    void shouldMultiplyByTheSmallestRatioOfThePrefix() {
        // 2 | 0.5 * 2 | 3 * 0.5 | 4 * 0.5
        assertThat(weigh(new MinimumPrefixWeights(10, false))).containsExactly(near(2, 1, 0, 1.5, 2), within(1e-6f));
        assertThat(weigh(new MinimumPrefixWeights(1.8, false)))
                .containsExactly(near(1.8, 1, 0, 1.5, 1.8), within(1e-6f));
    }

    @Test
    void shouldTruncateTheCumulativeProductToABandThatWidensWithThePosition() {
        // products 2, 1, 3, 12; bounds e^(0.4 sqrt t) = 1.492, 1.761, 1.999, 2.226
        assertThat(weigh(new CumulativeWeights(0.4, 0.4, false)))
                .containsExactly(near(Math.exp(0.4), 1, 0, Math.exp(0.4 * Math.sqrt(3)), Math.exp(0.8)), within(1e-6f));
        assertThat(weigh(new CumulativeWeights(5, 5, false))).containsExactly(near(2, 1, 0, 3, 12), within(1e-5f));
    }

    @Test
    void shouldRaiseCumulativeProductsBelowTheBand() {
        float[] weights = new float[2];
        WeightSummary summary = CumulativeWeights.defaults()
                .compute(new TokenBatch(new int[] {0, 2}, new byte[] {1, 1}), ratios(0.5, 1), weights);

        assertThat(weights).containsExactly(near(Math.exp(-0.025), Math.exp(-0.025 * Math.sqrt(2))), within(1e-6f));
        assertThat(summary.truncatedTokens()).isEqualTo(2);
    }

    @Test
    void shouldWeighTurnsByThemselves() {
        double second = Math.sqrt(12);
        assertThat(weigh(new TurnWeights(5, false))).containsExactly(near(1, 1, 0, second, second), within(1e-6f));
        assertThat(weigh(new TurnProductWeights(20, false))).containsExactly(near(1, 1, 0, 12, 12), within(1e-5f));
        assertThat(weigh(new TurnProductWeights(5, false))).containsExactly(near(1, 1, 0, 5, 5), within(1e-5f));
    }

    @Test
    void shouldShapeRatiosBelowOne() {
        assertThat(weigh(new ShapedWeights(0.5, false)))
                .containsExactly(near(0.8, 0.5, 0, 3 / 3.5, 4 / 4.5), within(1e-6f));
        assertThatThrownBy(() -> new ShapedWeights(0, false)).hasMessageContaining("gamma=0.0");
    }

    @Test
    void shouldCapTheFullRatioAndRefuseAnyOther() {
        assertThat(weigh(new SingleSideCapWeights(3, false))).containsExactly(near(2, 0.5, 0, 3, 3), within(1e-6f));
        assertThatThrownBy(() -> new SingleSideCapWeights(3, false)
                        .compute(TURNS, LogRatio.engineMismatch(new float[5], new float[5]), new float[5]))
                .hasMessageContaining("full ratio current/behavior, not old/behavior");
    }

    @Test
    void shouldNormalizeToMeanOne() {
        // mean of 2, 0.5, 3, 4 is 2.375
        assertThat(weigh(new BatchNormalizedWeights(new TokenTruncatedWeights(10))))
                .containsExactly(near(2 / 2.375, 0.5 / 2.375, 0, 3 / 2.375, 4 / 2.375), within(1e-6f));
    }

    @Test
    void shouldNormalizeSequenceWeightsOverSequences() {
        TokenBatch batch = new TokenBatch(new int[] {0, 3, 4, 5}, new byte[] {1, 1, 1, 1, 0});
        float[] weights = new float[5];

        // weights 3 (three tokens) and 1: over sequences the mean is 2, over tokens it would be 2.5
        new BatchNormalizedWeights(new SequenceTruncatedWeights(3)).compute(batch, ratios(2, 2, 2, 1, 1), weights);

        assertThat(weights).containsExactly(near(1.5, 1.5, 1.5, 0.5, 0), within(1e-6f));
    }

    @Test
    void shouldLeaveWeightsThatAreAllZero() {
        float[] weights = new float[5];
        WeightSummary summary =
                new BatchNormalizedWeights(new SequenceBandWeights(0.9, 1.1)).compute(TURNS, ratios(RATIOS), weights);

        assertThat(weights).containsOnly(0f);
        assertThat(summary.maskedTokens()).isEqualTo(4);
    }

    static List<WeightMethod> methods() {
        return List.of(
                new TokenTruncatedWeights(2),
                new SequenceTruncatedWeights(2),
                new TokenBandWeights(0.5, 5),
                new SequenceBandWeights(0.5, 5),
                new GeometricSequenceWeights(1.01, false),
                new MinimumPrefixWeights(2, false),
                CumulativeWeights.defaults(),
                new TurnWeights(2, false),
                new TurnProductWeights(2, false),
                new ShapedWeights(0.1, false),
                new SingleSideCapWeights(4, false),
                new BatchNormalizedWeights(new TokenTruncatedWeights(2)));
    }

    @ParameterizedTest
    @MethodSource("methods")
    void shouldNotDependOnContextValuesOrOnTheOrderOfSequences(WeightMethod method) {
        for (long seed = 0; seed < 40; seed++) {
            RandomBatches random = new RandomBatches(seed);
            TokenBatch batch = random.next();
            float[] behavior = random.logProbs(batch);
            float[] current = random.near(batch, behavior, 0.3);
            float[] weights = new float[batch.tokenCount()];
            WeightSummary summary = method.compute(batch, LogRatio.full(current, behavior), weights);

            Permuted permuted = Permuted.reversed(batch);
            float[] reversed = new float[batch.tokenCount()];
            WeightSummary again = method.compute(
                    permuted.batch(), LogRatio.full(permuted.of(current), permuted.of(behavior)), reversed);

            assertThat(reversed).containsExactly(permuted.of(weights), within(1e-6f));
            assertThat(again.trainedTokens()).isEqualTo(summary.trainedTokens()).isEqualTo(batch.trainedTokens());
            assertThat(again.truncatedTokens()).isEqualTo(summary.truncatedTokens());
            assertThat(again.changedSequences()).isEqualTo(summary.changedSequences());
            for (int t = 0; t < weights.length; t++) {
                assertThat(weights[t]).isFinite().isNotNegative();
                assertThat(batch.isTrained(t) || weights[t] == 0f).isTrue();
            }
        }
    }

    @ParameterizedTest
    @MethodSource("methods")
    void shouldGiveOnPolicyTokensOneWeight(WeightMethod method) {
        for (long seed = 0; seed < 20; seed++) {
            RandomBatches random = new RandomBatches(seed);
            TokenBatch batch = random.next();
            float[] logProbs = random.logProbs(batch);
            float[] weights = new float[batch.tokenCount()];

            WeightSummary summary = method.compute(batch, LogRatio.full(logProbs, logProbs), weights);

            float expected = method instanceof ShapedWeights ? (float) (1 / 1.1) : 1f;
            for (int t = 0; t < weights.length; t++) {
                assertThat(weights[t]).isEqualTo(batch.isTrained(t) ? expected : 0f);
            }
            assertThat(summary.truncatedTokens() + summary.maskedTokens()).isZero();
        }
    }

    @ParameterizedTest
    @MethodSource("methods")
    void shouldRefuseNonFiniteLogProbsOfTrainedTokens(WeightMethod method) {
        float[] current = {0f, 0f, 0f, Float.NaN, 0f};
        assertThatThrownBy(() -> method.compute(TURNS, LogRatio.full(current, new float[5]), new float[5]))
                .isInstanceOf(NonFiniteLogProbException.class)
                .hasMessageContaining("sequence=0, token=3");
    }

    @Test
    void shouldNameTheUnit() {
        assertThat(methods().stream().map(WeightMethod::unit).distinct())
                .contains(
                        CorrectionUnit.TOKEN,
                        CorrectionUnit.SEQUENCE,
                        CorrectionUnit.PREFIX,
                        CorrectionUnit.TURN,
                        CorrectionUnit.BATCH);
    }

    @Test
    void shouldRefuseBandsWithoutOne() {
        for (double[] band :
                new double[][] {{1.1, 2}, {0.5, 0.9}, {0, 2}, {Double.NaN, 2}, {0.5, Double.POSITIVE_INFINITY}}) {
            assertThatThrownBy(() -> new TokenBandWeights(band[0], band[1])).hasMessageContaining("lower=" + band[0]);
            assertThatThrownBy(() -> new SequenceBandWeights(band[0], band[1]))
                    .hasMessageContaining("upper=" + band[1]);
        }
    }

    /** A batch with its sequences in reverse order, and vectors to match. */
    record Permuted(TokenBatch batch, int[] source) {
        static Permuted reversed(TokenBatch batch) {
            int sequences = batch.sequenceCount();
            int[] offsets = new int[sequences + 1];
            byte[] mask = new byte[batch.tokenCount()];
            int[] source = new int[batch.tokenCount()];
            int at = 0;
            for (int i = 0; i < sequences; i++) {
                int s = sequences - 1 - i;
                for (int t = batch.start(s); t < batch.end(s); t++) {
                    mask[at] = (byte) (batch.isTrained(t) ? 1 : 0);
                    source[at++] = t;
                }
                offsets[i + 1] = at;
            }
            return new Permuted(new TokenBatch(offsets, mask), source);
        }

        float[] of(float[] packed) {
            float[] permuted = new float[packed.length];
            for (int t = 0; t < permuted.length; t++) {
                permuted[t] = packed[source[t]];
            }
            return permuted;
        }
    }
}
