package dev.millrace.corrections.objective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.RolloutCorrection;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionResult;
import dev.millrace.corrections.rollout.RolloutCorrectionSettings;
import org.junit.jupiter.api.Test;

class BypassModeTest {
    private static final PpoClip CLIP = new PpoClip(Anchor.BEHAVIOR, 0.2, 0.2, 3);
    private static final UpdateFacts MEAN = UpdateFacts.of(new LossAggregation.TokenMean());

    private static RolloutCorrectionConfig settings(String is, String lossType) {
        return new RolloutCorrectionSettings(
                        is, is == null ? null : "1.5", false, "token_k1", "0.6_1.6", true, lossType)
                .resolve();
    }

    private static ObjectiveInput input(RandomInput in) {
        return ObjectiveInput.of(in.batch(), in.current(), in.advantages()).withBehavior(in.behavior());
    }

    @Test
    void shouldClipAroundTheBehaviorPolicyOnWhatTheRejectionLeaves() {
        BypassMode bypass = new BypassMode(settings(null, "ppo_clip"), CLIP);
        int rejected = 0;
        for (int seed = 0; seed < 20; seed++) {
            RandomInput in = RandomInput.of(seed, 0.4);
            RolloutCorrectionResult correction = new RolloutCorrection(settings(null, "ppo_clip"))
                    .apply(in.batch(), LogRatio.full(in.current(), in.behavior()));
            ObjectiveResult expected =
                    CLIP.evaluate(input(in).withProximal(in.behavior()).withMask(correction.mask()), MEAN);

            ObjectiveResult actual = bypass.evaluate(input(in), MEAN);

            assertThat(actual.loss()).isEqualTo(expected.loss());
            assertThat(actual.gradient()).containsExactly(expected.gradient());
            assertThat(actual.metrics())
                    .containsAllEntriesOf(expected.metrics())
                    .containsAllEntriesOf(correction.metrics());
            rejected += correction.rejectedTokens();
        }
        assertThat(rejected).isGreaterThan(50);
    }

    @Test
    void shouldWeighReinforceByTruncatedRatiosHeldFixed() {
        TokenBatch batch = new TokenBatch(new int[] {0, 3, 4}, new byte[] {1, 1, 0, 1});
        float[] behavior = {-1, -1, Float.NaN, -2};
        // ratios e^0.3, e^-0.2 and e^1: the last is outside the band and rejected
        float[] current = {-0.7f, -1.2f, Float.NaN, -1};
        ObjectiveResult result = new BypassMode(settings("token", "reinforce"), CLIP)
                .evaluate(
                        ObjectiveInput.of(batch, current, new float[] {1, -2, 5, 9})
                                .withBehavior(behavior),
                        MEAN);

        double first = Math.exp(0.3);
        double second = Math.exp(-0.2);
        assertThat(result.loss()).isCloseTo((first * 0.7 - 2 * second * 1.2) / 2, within(1e-6));
        assertThat(result.gradient())
                .containsExactly(new float[] {(float) (-first / 2), (float) second, 0, 0}, within(1e-6f));
        assertThat(result.metrics()).containsKey("rollout_corr/rollout_is_mean").containsKey(ObjectiveResult.APPROX_KL);
    }

    @Test
    void shouldActOnTheUnitOfItsWeights() {
        assertThat(BypassReinforce.defaults().unit()).isEqualTo(CorrectionUnit.SEQUENCE);
        assertThat(BypassPpoClip.defaults().unit()).isEqualTo(CorrectionUnit.TOKEN);
    }

    @Test
    void shouldRefuseWhatWouldCorrectTwiceOrNotAtAll() {
        RandomInput in = RandomInput.of(1, 0.1);
        BypassMode bypass = new BypassMode(settings(null, "ppo_clip"), CLIP);
        RolloutCorrectionConfig decoupled =
                new RolloutCorrectionSettings(null, null, false, null, null, false, "ppo_clip").resolve();

        assertThatThrownBy(() -> bypass.evaluate(in.input(), MEAN)).hasMessageContaining("would correct twice");
        assertThatThrownBy(() -> bypass.evaluate(ObjectiveInput.of(in.batch(), in.current(), in.advantages()), MEAN))
                .hasMessageContaining("give behavior log-probs");
        assertThatThrownBy(() -> new BypassMode(decoupled, CLIP)).hasMessageContaining("bypass_mode=true");
    }

    @Test
    void shouldRefuseABatchOfWhichTheRejectionLeavesNothing() {
        TokenBatch batch = new TokenBatch(new int[] {0, 1}, new byte[] {1});
        ObjectiveInput faraway =
                ObjectiveInput.of(batch, new float[] {-9}, new float[] {1}).withBehavior(new float[] {-1});
        RolloutCorrectionConfig config = settings(null, "ppo_clip");

        assertThatThrownBy(() -> new BypassMode(config, CLIP).evaluate(faraway, MEAN))
                .hasMessageContaining("no trained token in the batch");
        UpdateFacts part = UpdateFacts.of(new LossAggregation.TokenMean(), new GlobalBatch(10, 4, 1));
        assertThat(new BypassMode(config, CLIP).evaluate(faraway, part).loss()).isZero();
    }
}
