package dev.millrace.corrections.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.RandomBatches;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.List;
import org.junit.jupiter.api.Test;

class SignedWeightsTest {
    private final TokenBatch batch = new TokenBatch(new int[] {0, 3, 5}, new byte[] {1, 0, 1, 1, 1});
    private final float[] weights = new float[5];

    private static LogRatio ratios(double... logRatios) {
        float[] current = new float[logRatios.length];
        for (int t = 0; t < current.length; t++) {
            current[t] = (float) logRatios[t];
        }
        return LogRatio.full(current, new float[current.length]);
    }

    @Test
    void shouldLearnGoodAnswersAtFullWeightAndTaperBadOnes() {
        WeightSummary summary = new ToprWeights()
                .compute(batch, ratios(-1, 9, -1, -0.25, -0.5), new float[] {1, 0, 1, -1, -1}, weights);

        assertThat(weights).containsExactly(1f, 0f, 1f, (float) Math.exp(-0.75), (float) Math.exp(-0.75));
        assertThat(summary.truncatedTokens()).isEqualTo(2);
        assertThat(summary.changedSequences()).isEqualTo(1);

        new ToprWeights().compute(batch, ratios(0, 9, 0, 2, 2), new float[] {0, 0, 0, -1, -1}, weights);
        assertThat(weights).containsExactly(1f, 0f, 1f, 1f, 1f);
    }

    @Test
    void shouldTakeTapersOfOnesOwn() {
        new ToprWeights(0.5, 2, 0.25, 1)
                .compute(batch, ratios(3, 9, 3, -9, -9), new float[] {1, 0, 1, -1, -1}, weights);

        assertThat(weights).containsExactly(2f, 0f, 2f, 0.25f, 0.25f);
    }

    @Test
    void shouldRefuseBothSignsInOneSequenceUnderTopr() {
        assertThatThrownBy(() ->
                        new ToprWeights().compute(batch, ratios(0, 0, 0, 0, 0), new float[] {1, -1, 1, 1, -1}, weights))
                .hasMessageContaining("sequence=1");
    }

    @Test
    void shouldFlipTheRatioOfPositiveTokensAndCapIt() {
        WeightSummary summary = new AspoWeights(0.2, 0.28, 3)
                .compute(batch, ratios(-0.5, 9, -2, 0.1, -0.1), new float[] {1, 0, 1, 1, -1}, weights);

        assertThat(weights).containsExactly((float) Math.exp(0.5), 0f, 3f, (float) Math.exp(-(double) 0.1f), (float)
                Math.exp(-(double) 0.1f));
        assertThat(summary.truncatedTokens()).isEqualTo(1);
        assertThat(summary.maskedTokens()).isZero();
    }

    @Test
    void shouldMaskWhatPpoWouldClipUnderAspo() {
        WeightSummary summary = new AspoWeights(0.2, 0.28, 3)
                .compute(batch, ratios(0.3, 9, -0.3, -0.3, 2), new float[] {1, 0, -1, 1, -1}, weights);

        // up and already above 1.28; down and already below 0.8; up from below; down from above, capped
        assertThat(weights).containsExactly(0f, 0f, 0f, (float) Math.exp((double) 0.3f), 3f);
        assertThat(summary.maskedTokens()).isEqualTo(2);
    }

    @Test
    void shouldBoundCorrectAndIncorrectAnswersApartUnderDispo() {
        new DispoWeights(0.5, 4, 0.9, 1.1)
                .compute(batch, ratios(-1, 9, 2, -1, 2), new float[] {1, 0, 1, -1, -1}, weights);

        assertThat(weights).containsExactly(0.5f, 0f, 4f, 0.9f, 1.1f);
    }

    @Test
    void shouldGiveWeightOneOnPolicyAndZeroToContext() {
        RandomBatches random = new RandomBatches(1);
        for (int round = 0; round < 50; round++) {
            TokenBatch ragged = random.next();
            float[] behavior = random.logProbs(ragged);
            float[] advantages = new float[ragged.tokenCount()];
            for (int s = 0; s < ragged.sequenceCount(); s++) {
                for (int t = ragged.start(s); t < ragged.end(s); t++) {
                    advantages[t] = s % 2 == 0 ? 1 : -1;
                }
            }
            for (SignedWeightMethod method :
                    List.of(new ToprWeights(), new AspoWeights(0.2, 0.2, 3), new DispoWeights(0.5, 2, 0.5, 2))) {
                float[] result = new float[ragged.tokenCount()];
                WeightSummary summary = method.compute(ragged, LogRatio.full(behavior, behavior), advantages, result);
                for (int t = 0; t < result.length; t++) {
                    assertThat(result[t]).isEqualTo(ragged.isTrained(t) ? 1f : 0f);
                }
                assertThat(summary.changedFraction()).isZero();
            }
        }
    }

    @Test
    void shouldRefuseWhatHasNoAnswer() {
        assertThatThrownBy(() -> new ToprWeights(1, 1, -0.1, 1)).hasMessageContaining("bad lower=-0.1");
        assertThatThrownBy(() -> new DispoWeights(0.5, 0.9, 0, 1)).hasMessageContaining("correct");
        assertThatThrownBy(() -> new AspoWeights(1, 0.2, 3)).hasMessageContaining("low=1.0");
        assertThatThrownBy(() -> new AspoWeights(0.2, 0.2, 0.5)).hasMessageContaining("cap=0.5");
        for (SignedWeightMethod method :
                List.of(new ToprWeights(), new AspoWeights(0.2, 0.2, 3), new DispoWeights(0.5, 2, 0.5, 2))) {
            assertThatThrownBy(() -> method.compute(batch, ratios(0, 0, Double.NaN, 0, 0), new float[5], weights))
                    .isInstanceOf(NonFiniteLogProbException.class)
                    .hasMessageContaining("sequence=0, token=2");
            assertThatThrownBy(() ->
                            method.compute(batch, ratios(0, 0, 0, 0, 0), new float[] {0, 0, 0, 0, Float.NaN}, weights))
                    .hasMessageContaining("advantages")
                    .hasMessageContaining("sequence=1, token=1");
        }
    }
}
