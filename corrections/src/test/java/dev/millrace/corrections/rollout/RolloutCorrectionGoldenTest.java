package dev.millrace.corrections.rollout;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.corrections.golden.GoldenAssertions;
import dev.millrace.corrections.golden.GoldenCase;
import dev.millrace.corrections.golden.GoldenCases;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class RolloutCorrectionGoldenTest {
    static List<GoldenCase> cases() {
        return GoldenCases.of("rollout_correction");
    }

    @ParameterizedTest
    @MethodSource("cases")
    void shouldMatchTheReference(GoldenCase golden) {
        if (golden.expectsError()) {
            assertThatThrownBy(() -> correct(golden)).isInstanceOf(IllegalArgumentException.class);
        } else {
            RolloutCorrectionResult result = correct(golden);
            Map<String, Object> output = new HashMap<>();
            output.put("is_weights", result.weights().orElse(null));
            output.put("mask", result.mask());
            output.put("metrics", result.metrics());
            GoldenAssertions.assertMatches(golden, output);
        }
    }

    private static RolloutCorrectionResult correct(GoldenCase golden) {
        JsonNode config = golden.config();
        RolloutCorrectionSettings settings = new RolloutCorrectionSettings(
                text(config, "rollout_is"),
                text(config, "rollout_is_threshold"),
                config.path("rollout_is_batch_normalize").asBoolean(),
                text(config, "rollout_rs"),
                text(config, "rollout_rs_threshold"),
                false,
                "ppo_clip");
        return new RolloutCorrection(settings.resolve(Semantics.VERL_REFERENCE))
                .apply(
                        golden.batch(),
                        LogRatio.anchor(golden.tokens("old_logprobs"), golden.tokens("rollout_logprobs")));
    }

    private static String text(JsonNode config, String key) {
        return config.hasNonNull(key) ? config.get(key).asText() : null;
    }
}
