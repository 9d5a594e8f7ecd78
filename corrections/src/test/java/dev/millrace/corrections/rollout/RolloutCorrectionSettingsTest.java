package dev.millrace.corrections.rollout;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RolloutCorrectionSettingsTest {
    private static RolloutCorrectionSettings weights(String level, String threshold) {
        return new RolloutCorrectionSettings(level, threshold, false, null, null, false, "ppo_clip");
    }

    private static RolloutCorrectionSettings rejection(String options, String thresholds) {
        return new RolloutCorrectionSettings(null, "2.0", false, options, thresholds, false, "ppo_clip");
    }

    @Test
    void shouldReadOneNumberAsACapAndTwoAsABand() {
        assertThat(weights("token", " 2.5 ").resolve().weights())
                .contains(new WeightRule.Truncate(WeightRule.Level.TOKEN, 2.5));
        assertThat(weights("sequence", "0.5_5").resolve().weights())
                .contains(new WeightRule.Band(WeightRule.Level.SEQUENCE, 0.5, 5));
        assertThat(weights(null, "2.0").resolve().weights()).isEmpty();
    }

    @Test
    void shouldGiveEachOptionItsOwnThresholdOrAllTheSame() {
        RolloutCorrectionConfig each =
                rejection("token_k1, seq_mean_k3,token_k1", "0.5_2.0, 0.01").resolve();
        RolloutCorrectionConfig shared = rejection("seq_max_k2,seq_sum_k3", "3").resolve();

        assertThat(each.rejections())
                .containsExactly(
                        RejectionRule.within(RejectionMode.TOKEN_K1, Math.log(0.5), Math.log(2)),
                        RejectionRule.within(RejectionMode.SEQ_MEAN_K3, 0, 0.01));
        assertThat(shared.rejections()).extracting(RejectionRule::max).containsExactly(3.0, 3.0);
    }

    @Test
    void shouldTakeTheReciprocalAsTheLowerBoundOfASingleRatio() {
        RejectionRule rule = rejection("seq_sum_k1", "4").resolve().rejections().get(0);

        assertThat(rule.min()).isCloseTo(-Math.log(4), within(1e-15));
        assertThat(rule.max()).isEqualTo(Math.log(4));
    }

    @ParameterizedTest
    @CsvSource({"1_0,10", "1e1,10", "+2.,2", ".5e1,5", "-3,-3", "inf,Infinity", "-Infinity,-Infinity"})
    void shouldReadNumbersAsPythonDoes(String text, double expected) {
        assertThat(ThresholdText.number("rollout_is_threshold", text)).isEqualTo(expected);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "two", "0x10", "2f", "1__0", "_1", "1_", "nan", "--2", "2,5"})
    void shouldRefuseWhatIsNoNumber(String text) {
        assertThatThrownBy(() -> ThresholdText.number("rollout_is_threshold", text))
                .hasMessage("rollout_is_threshold must be a number or lower_upper: '" + text + "'");
    }

    @Test
    void shouldRefuseSettingsThatTheReferenceRefuses() {
        for (Semantics semantics : Semantics.values()) {
            assertThatThrownBy(() -> weights("group", "2.0").resolve(semantics)).hasMessageContaining("'group'");
            assertThatThrownBy(() -> weights("token", "3.0_2.0").resolve(semantics))
                    .hasMessageContaining("lower <= upper");
            assertThatThrownBy(() -> weights("token", "0").resolve(semantics)).hasMessageContaining("positive");
            assertThatThrownBy(() -> weights("token", "-1_2").resolve(semantics))
                    .hasMessageContaining("positive");
            assertThatThrownBy(() -> weights("token", "true").resolve(semantics))
                    .hasMessageContaining("'true'");
            assertThatThrownBy(() -> rejection("token_k4", "1").resolve(semantics))
                    .hasMessageContaining("'token_k4'");
            assertThatThrownBy(() -> rejection("token_k2", "0.1_0.2").resolve(semantics))
                    .hasMessageContaining("single upper");
            assertThatThrownBy(() -> rejection("seq_mean_k1", null).resolve(semantics))
                    .hasMessageContaining("needs");
            assertThatThrownBy(() ->
                            rejection("token_k1,token_k2,token_k3", "0.5_2,1").resolve(semantics))
                    .hasMessageContaining("one for each of 3");
            assertThatThrownBy(() -> rejection(" , ", "1").resolve(semantics))
                    .hasMessageContaining("at least one option");
            assertThatThrownBy(() -> rejection("token_k1", "0").resolve(semantics))
                    .hasMessageContaining("positive");
            assertThatThrownBy(() -> rejection("token_k1", "0.99").resolve(semantics))
                    .hasMessageContaining("rollout_rs_threshold=0.99 for token_k1")
                    .hasMessageContaining("lower_upper");
        }
    }

    @Test
    void shouldRefuseContradictionsThatTheReferenceIgnores() {
        assertThatThrownBy(() -> weights("token", null).resolve()).hasMessageContaining("needs rollout_is_threshold");
        assertThatThrownBy(() -> weights("token", "0.5").resolve()).hasMessageContaining("on-policy");
        assertThatThrownBy(() -> weights("token", "2_5").resolve()).hasMessageContaining("on-policy");
        assertThatThrownBy(() -> weights("token", "inf").resolve()).hasMessageContaining("finite");
        assertThatThrownBy(() -> rejection(null, "2").resolve())
                .hasMessageContaining("does nothing without rollout_rs");
        assertThatThrownBy(() -> rejection("token_k1", "2_5").resolve()).hasMessageContaining("on-policy");
        assertThatThrownBy(
                        () -> new RolloutCorrectionSettings(null, "2.0", true, null, null, false, "ppo_clip").resolve())
                .hasMessageContaining("rollout_is_batch_normalize");
        assertThatThrownBy(() ->
                        new RolloutCorrectionSettings(null, "2.0", false, null, null, false, "reinforce").resolve())
                .hasMessageContaining("bypass_mode=true");
        assertThatThrownBy(() ->
                        new RolloutCorrectionSettings("token", "2.0", false, null, null, true, "ppo_clip").resolve())
                .hasMessageContaining("loss_type=reinforce");
        assertThatThrownBy(() -> new RolloutCorrectionSettings(null, "2.0", false, null, null, true, "dpo").resolve())
                .hasMessageContaining("'dpo'");
        assertThat(weights("token", null).resolve(Semantics.VERL_REFERENCE).weights())
                .isEmpty();
        assertThat(rejection(null, "2").resolve(Semantics.VERL_REFERENCE).rejections())
                .isEmpty();
        assertThat(rejection("token_k1", "2_5")
                        .resolve(Semantics.VERL_REFERENCE)
                        .rejections())
                .hasSize(1);
    }
}
