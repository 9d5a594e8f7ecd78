package dev.millrace.corrections.objective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import org.junit.jupiter.api.Test;

class PpoClipTest {
    private static final UpdateFacts SUM = UpdateFacts.of(new LossAggregation.TokenSum());
    private static final PpoClip USUAL = new PpoClip(Anchor.PROXIMAL, 0.2, 0.2, 3);
    private final TokenBatch batch = new TokenBatch(new int[] {0, 2, 5}, new byte[] {1, 1, 1, 1, 0});

    private static float log(double ratio) {
        return (float) (Math.log(ratio) - 1);
    }

    private ObjectiveInput input(float[] advantages, double... ratios) {
        float[] current = new float[5];
        for (int t = 0; t < 4; t++) {
            current[t] = log(ratios[t]);
        }
        current[4] = Float.NaN;
        return ObjectiveInput.of(batch, current, advantages).withProximal(new float[] {-1, -1, -1, -1, Float.NaN});
    }

    @Test
    void shouldClipAboveForPositiveAndBelowForNegativeAdvantagesOnly() {
        // ratios 1.5 and 0.5 on both signs of A = 2; band [0.8, 1.28]
        ObjectiveResult result = new PpoClip(Anchor.PROXIMAL, 0.2, 0.28, 3)
                .evaluate(input(new float[] {2, 2, -2, -2, Float.NaN}, 1.5, 0.5, 1.5, 0.5), SUM);

        // −2·1.28, −2·0.5, 2·1.5, 2·0.8
        assertThat(result.loss()).isCloseTo(-2.56 - 1.0 + 3.0 + 1.6, within(1e-6));
        assertThat(result.gradient()).containsExactly(new float[] {0, -1, 3, 0, 0}, within(1e-6f));
        assertThat(result.metrics())
                .containsEntry(ObjectiveResult.CLIPPED_FRACTION, 0.5)
                .containsEntry(ObjectiveResult.LOWER_CLIPPED_FRACTION, 0.0);
    }

    @Test
    void shouldBoundTheLossOfATokenThatBecameLikelyAlthoughItsAdvantageIsNegative() {
        ObjectiveResult result = USUAL.evaluate(input(new float[] {-2, 0, 0, 0, 0}, 10, 1, 1, 1), SUM);

        assertThat(result.loss()).isCloseTo(6.0, within(1e-9));
        assertThat(result.gradient()[0]).isZero();
        assertThat(result.metrics()).containsEntry(ObjectiveResult.LOWER_CLIPPED_FRACTION, 0.25);
    }

    @Test
    void shouldEqualThePlainPolicyGradientOnPolicy() {
        ObjectiveInput onPolicy = input(new float[] {1, -2, 3, 0.5f, 0}, 1, 1, 1, 1);
        UpdateFacts mean = UpdateFacts.of(new LossAggregation.TokenMean());

        assertThat(USUAL.evaluate(onPolicy, mean).gradient())
                .containsExactly(new Reinforce().evaluate(onPolicy, mean).gradient());
    }

    @Test
    void shouldBoundLogRatiosToTwentyAndStopTheGradientBeyond() {
        float[] current = {-80, 0, -1, -1, 0};
        ObjectiveResult result = new PpoClip(Anchor.PROXIMAL, 0.2, 0.2, Double.POSITIVE_INFINITY)
                .evaluate(
                        ObjectiveInput.of(batch, current, new float[] {1, -1, 0, 0, 0})
                                .withProximal(new float[] {0, -80, -1, -1, 0}),
                        SUM);

        assertThat(result.loss()).isCloseTo(-Math.exp(-20) + Math.exp(20), within(1e-6));
        assertThat(result.gradient()).containsOnly(0f, -0f);
    }

    @Test
    void shouldNameSequenceAndTokenOfNonFiniteValues() {
        float[] fine = {-1, -1, -1, -1, -1};
        float[] broken = {-1, -1, -1, Float.NEGATIVE_INFINITY, -1};

        assertThatThrownBy(() -> ObjectiveInput.of(batch, broken, fine))
                .isInstanceOf(NonFiniteLogProbException.class)
                .hasMessageContaining("current log-probs")
                .hasMessageContaining("sequence=1, token=1");
        assertThatThrownBy(() -> ObjectiveInput.of(batch, fine, fine).withProximal(broken))
                .hasMessageContaining("proximal log-probs");
        assertThatThrownBy(() -> ObjectiveInput.of(batch, fine, broken)).hasMessageContaining("advantages");
        assertThatThrownBy(() -> ObjectiveInput.of(batch, fine, fine).withWeights(fine))
                .hasMessageContaining("importance weights must not be negative: sequence=0, token=0, weight=-1.0");
        assertThatThrownBy(() -> ObjectiveInput.of(batch, fine, new float[4])).hasMessageContaining("advantages");
    }

    @Test
    void shouldRefuseToRunWithoutTheVectorsItNeeds() {
        ObjectiveInput bare = ObjectiveInput.of(batch, new float[5], new float[5]);

        assertThatThrownBy(() -> USUAL.evaluate(bare, SUM))
                .hasMessageContaining("PPO clip compares the current policy with a proximal one");
    }

    @Test
    void shouldRefuseSettingsThatMeanNothing() {
        assertThatThrownBy(() -> new PpoClip(Anchor.OLD, 0.2, 0.2, 1.0))
                .hasMessage("clip_ratio_c must be above 1: 1.0");
        assertThatThrownBy(() -> new PpoClip(Anchor.OLD, 0.2, 0.2, Double.NaN)).hasMessageContaining("NaN");
        assertThatThrownBy(() -> new PpoClip(Anchor.OLD, -0.1, 0.2, 3))
                .hasMessage("clip_ratio_low must be at least 0 and finite: -0.1");
        assertThatThrownBy(() -> new DecoupledPpo(0.2, Double.POSITIVE_INFINITY, 3))
                .hasMessage("clip_ratio_high must be at least 0 and finite: Infinity");
    }
}
