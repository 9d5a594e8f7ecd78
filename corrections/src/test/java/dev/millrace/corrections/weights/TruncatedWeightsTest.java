package dev.millrace.corrections.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.RandomBatches;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TruncatedWeightsTest {
    private static final TokenBatch BATCH = new TokenBatch(new int[] {0, 3, 3, 5}, new byte[] {1, 0, 1, 0, 0});

    @Test
    void shouldTruncateTokensAboveTheCapOnly() {
        // ln 4 = 1.386 is above the cap of 2, ln 0.5 below it
        float[] behavior = {-2f, 5f, -1f, 0f, 0f};
        float[] old = {(float) (-2 + Math.log(4)), Float.NaN, (float) (-1 + Math.log(0.5)), 9f, 9f};
        float[] weights = {9f, 9f, 9f, 9f, 9f};

        WeightSummary summary =
                new TokenTruncatedWeights(2).compute(BATCH, LogRatio.engineMismatch(old, behavior), weights);

        assertThat(weights).containsExactly(new float[] {2f, 0f, 0.5f, 0f, 0f}, within(1e-6f));
        assertThat(summary.trainedTokens()).isEqualTo(2);
        assertThat(summary.truncatedTokens()).isEqualTo(1);
        assertThat(summary.maskedTokens()).isZero();
        assertThat(summary.trainedSequences()).isEqualTo(1);
        assertThat(summary.changedSequences()).isEqualTo(1);
        assertThat(summary.weight().mean()).isCloseTo(1.25, within(1e-7));
    }

    @Test
    void shouldGiveEveryTokenOfASequenceItsProduct() {
        // e^(0.3 - 0.1) = 1.2214
        float[] behavior = {-2f, 5f, -1f, 0f, 0f};
        float[] old = {-1.7f, Float.NaN, -1.1f, 9f, 9f};
        float[] weights = new float[5];

        WeightSummary summary =
                new SequenceTruncatedWeights(2).compute(BATCH, LogRatio.engineMismatch(old, behavior), weights);

        assertThat(weights).containsExactly(new float[] {1.221403f, 0f, 1.221403f, 0f, 0f}, within(1e-6f));
        assertThat(summary.truncatedTokens()).isZero();
        assertThat(summary.weight().max()).isCloseTo(1.221403, within(1e-6));
    }

    @Test
    void shouldTruncateLongSequencesWithoutOverflow() {
        int length = 20_000;
        byte[] mask = new byte[length];
        java.util.Arrays.fill(mask, (byte) 1);
        TokenBatch batch = new TokenBatch(new int[] {0, length}, mask);
        float[] old = new float[length];
        float[] behavior = new float[length];
        java.util.Arrays.fill(behavior, -1f);
        float[] weights = new float[length];

        WeightSummary summary =
                new SequenceTruncatedWeights(5).compute(batch, LogRatio.engineMismatch(old, behavior), weights);
        new SequenceTruncatedWeights(5).compute(batch, LogRatio.engineMismatch(behavior, old), weights);

        assertThat(summary.weight().mean()).isCloseTo(5, within(1e-12));
        assertThat(summary.truncatedTokens()).isEqualTo(length);
        assertThat(weights[0]).isEqualTo((float) Math.exp(-20));
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5})
    void shouldGiveWeightOneOnPolicy(long seed) {
        RandomBatches random = new RandomBatches(seed);
        TokenBatch batch = random.next();
        float[] logProbs = random.logProbs(batch);
        LogRatio ratio = LogRatio.engineMismatch(logProbs, logProbs);

        for (WeightMethod method : new WeightMethod[] {new TokenTruncatedWeights(1), new SequenceTruncatedWeights(1)}) {
            float[] weights = new float[batch.tokenCount()];
            WeightSummary summary = method.compute(batch, ratio, weights);

            for (int t = 0; t < weights.length; t++) {
                assertThat(weights[t]).isEqualTo(batch.isTrained(t) ? 1f : 0f);
            }
            assertThat(summary.truncatedTokens()).isZero();
            assertThat(summary.trainedTokens()).isEqualTo(batch.trainedTokens());
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5})
    void shouldAgreeWithAPlainLoopOnRandomRaggedBatches(long seed) {
        RandomBatches random = new RandomBatches(seed);
        for (int round = 0; round < 40; round++) {
            TokenBatch batch = random.next();
            float[] behavior = random.logProbs(batch);
            float[] old = random.near(batch, behavior, 1.0);
            float[] weights = new float[batch.tokenCount()];
            WeightSummary summary =
                    new TokenTruncatedWeights(1.5).compute(batch, LogRatio.engineMismatch(old, behavior), weights);

            double sum = 0;
            int truncated = 0;
            for (int t = 0; t < weights.length; t++) {
                double weight = batch.isTrained(t) ? Math.min(Math.exp((double) old[t] - behavior[t]), 1.5) : 0;
                truncated += weight == 1.5 ? 1 : 0;
                sum += weight;
                assertThat(weights[t]).isCloseTo((float) weight, within(1e-7f));
            }
            assertThat(summary.truncatedTokens()).isEqualTo(truncated);
            assertThat(summary.weight().mean()).isCloseTo(sum / Math.max(1, batch.trainedTokens()), within(1e-13));
        }
    }

    @Test
    void shouldAnswerABatchWithoutTrainedTokens() {
        TokenBatch batch = new TokenBatch(new int[] {0, 2}, new byte[2]);
        LogRatio ratio = LogRatio.engineMismatch(new float[] {Float.NaN, 1}, new float[2]);
        float[] weights = {7f, 7f};

        assertThat(new TokenTruncatedWeights(2).compute(batch, ratio, weights))
                .isEqualTo(new WeightSummary(0, 0, 0, 0, 0, new WeightSummary.Range(0, 0, 0)));
        assertThat(weights).containsExactly(0f, 0f);
    }

    @Test
    void shouldNameSequenceAndTokenOfNonFiniteLogProb() {
        float[] old = {0f, 0f, Float.NaN, 0f, 0f};
        LogRatio ratio = LogRatio.engineMismatch(old, new float[5]);

        for (WeightMethod method : new WeightMethod[] {new TokenTruncatedWeights(2), new SequenceTruncatedWeights(2)}) {
            assertThatThrownBy(() -> method.compute(BATCH, ratio, new float[5]))
                    .isInstanceOf(NonFiniteLogProbException.class)
                    .hasMessageContaining("old log-probs")
                    .hasMessageContaining("sequence=0, token=2");
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {0.99, 0, -1, Double.NaN, Double.POSITIVE_INFINITY})
    void shouldRefuseCapBelowOneOrNaN(double cap) {
        assertThatThrownBy(() -> new TokenTruncatedWeights(cap)).hasMessageContaining("cap=" + cap);
        assertThatThrownBy(() -> new SequenceTruncatedWeights(cap)).hasMessageContaining("cap=" + cap);
    }

    @Test
    void shouldRefuseWeightsOfTheWrongLength() {
        LogRatio ratio = LogRatio.engineMismatch(new float[5], new float[5]);
        assertThatThrownBy(() -> new TokenTruncatedWeights(2).compute(BATCH, ratio, new float[4]))
                .hasMessage("weights: one element per token is needed: length=4, tokens=5");
    }
}
