package dev.millrace.learner.objective;

import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionSettings;
import org.jspecify.annotations.Nullable;

/** verl's options for its bypass mode, as texts; an empty one is not given. */
final class VerlOptions {
    private VerlOptions() {}

    /** What they say, in the corrections' types; refused in the corrections' words if they are no correction in bypass mode. */
    static RolloutCorrectionConfig bypass(
            String rolloutIs, String isThreshold, String rolloutRs, String rsThreshold, String lossType) {
        return new RolloutCorrectionSettings(
                        emptyAsNull(rolloutIs),
                        emptyAsNull(isThreshold),
                        false,
                        emptyAsNull(rolloutRs),
                        emptyAsNull(rsThreshold),
                        true,
                        lossType)
                .resolve();
    }

    private static @Nullable String emptyAsNull(String text) {
        return text.isEmpty() ? null : text;
    }
}
