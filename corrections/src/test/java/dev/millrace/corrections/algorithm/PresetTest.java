package dev.millrace.corrections.algorithm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.corrections.golden.GoldenCases;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig.ObjectiveMode;
import dev.millrace.corrections.rollout.RolloutCorrectionSettings;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class PresetTest {
    private static final JsonNode TABLE = GoldenCases.read("presets").path("presets");

    @Test
    void shouldHaveEveryPresetOfTheReferenceAndNoOther() {
        assertThat(Preset.values()).hasSize(19).hasSize(TABLE.size());
    }

    @ParameterizedTest
    @EnumSource
    void shouldHaveTheReferencesParametersAndSettings(Preset preset) {
        JsonNode reference = TABLE.path(preset.label());
        RolloutCorrectionSettings settings = preset.settings();

        assertThat(preset.parameters()).hasSize(reference.path("parameters").size());
        preset.parameters()
                .forEach((name, value) -> assertThat(value)
                        .isEqualTo(reference.path("parameters").path(name).asText()));
        assertSame(reference.path("config"), settings);
    }

    @Test
    void shouldHaveTheReferencesConstructorDefaults() {
        assertSame(GoldenCases.read("presets").path("default_constructor"), RolloutCorrectionSettings.DEFAULTS);
    }

    private static void assertSame(JsonNode config, RolloutCorrectionSettings settings) {
        assertThat(settings.rolloutIs()).isEqualTo(text(config, "rollout_is"));
        assertThat(settings.rolloutIsThreshold()).isEqualTo(text(config, "rollout_is_threshold"));
        assertThat(settings.rolloutIsBatchNormalize())
                .isEqualTo(config.path("rollout_is_batch_normalize").asBoolean());
        assertThat(settings.rolloutRs()).isEqualTo(text(config, "rollout_rs"));
        assertThat(settings.rolloutRsThreshold()).isEqualTo(text(config, "rollout_rs_threshold"));
        assertThat(settings.bypassMode()).isEqualTo(config.path("bypass_mode").asBoolean());
        assertThat(settings.lossType()).isEqualTo(text(config, "loss_type"));
    }

    private static String text(JsonNode config, String key) {
        return config.hasNonNull(key) ? config.get(key).asText() : null;
    }

    @ParameterizedTest
    @EnumSource
    void shouldBeAcceptedByItsOwnLibrary(Preset preset) {
        RolloutCorrectionConfig config = preset.settings().resolve();

        assertThat(config.mode() == ObjectiveMode.DECOUPLED)
                .isEqualTo(!preset.label().startsWith("bypass"));
        assertThat(config.rejections().isEmpty()).isEqualTo(preset.settings().rolloutRs() == null);
    }

    @Test
    void shouldChangeParametersByNameAndRefuseOthers() {
        assertThat(Preset.DECOUPLED_K3_RS_TOKEN_TIS
                        .settings(Map.of("rs_threshold", "0.05"))
                        .rolloutRsThreshold())
                .isEqualTo("0.05");
        assertThat(Preset.DECOUPLED_TOKEN_ICEPOP
                        .settings(Map.of("threshold", "3"))
                        .rolloutIsThreshold())
                .isEqualTo("0.5_3");
        assertThatThrownBy(() -> Preset.DECOUPLED_TOKEN_IS.settings(Map.of("rs_threshold", "1")))
                .hasMessage("preset decoupled_token_is has no parameter rs_threshold; it has: threshold");
        assertThatThrownBy(() -> Preset.DISABLED.settings(Map.of("threshold", "1")))
                .hasMessageContaining("it has: none");
        assertThatThrownBy(() -> Preset.labelled("decoupled")).hasMessageContaining("known: decoupled_token_is, ");
    }
}
