package dev.millrace.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionSettings;
import dev.millrace.corrections.rollout.Semantics;
import org.jspecify.annotations.Nullable;

/** verl's rollout correction options, whose thresholds are numbers or texts, read with the reference's semantics. */
final class CaseRolloutOptions {
    private static final String DEFAULT_IS_THRESHOLD = "2.0";

    private CaseRolloutOptions() {}

    /** @param bypass whether behavior stands in for old, whatever the options say */
    static RolloutCorrectionConfig read(CaseConfig config, boolean bypass) {
        config.ignore("bypass_mode");
        config.ignore("rollout_is_threshold", "rollout_rs_threshold"); // nobody looks at them unless they are used
        String rolloutIs = config.has("rollout_is") ? config.text("rollout_is") : null;
        String rolloutRs = config.has("rollout_rs") ? config.text("rollout_rs") : null;
        return new RolloutCorrectionSettings(
                        rolloutIs,
                        rolloutIs == null ? null : isThreshold(config),
                        config.flag("rollout_is_batch_normalize", false),
                        rolloutRs,
                        rolloutRs == null ? null : threshold(config, "rollout_rs_threshold"),
                        bypass,
                        config.text("loss_type", "ppo_clip"))
                .resolve(Semantics.VERL_REFERENCE);
    }

    private static @Nullable String isThreshold(CaseConfig config) {
        return config.mentions("rollout_is_threshold")
                ? threshold(config, "rollout_is_threshold")
                : DEFAULT_IS_THRESHOLD;
    }

    private static @Nullable String threshold(CaseConfig config, String name) {
        JsonNode value = config.raw(name);
        if (value.isMissingNode()) {
            return null;
        }
        if (!value.isNumber() && !value.isTextual()) {
            throw new IllegalArgumentException(name + " must be a number or a text: " + value);
        }
        return value.asText();
    }
}
