package dev.millrace.stages;

import dev.millrace.corrections.preset.Preset;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig.ObjectiveMode;
import dev.millrace.corrections.rollout.RolloutCorrectionSettings;
import dev.millrace.corrections.rollout.WeightRule;
import org.jspecify.annotations.Nullable;

/**
 * Importance weights and rejection, under verl's names: a preset, or each by itself.
 *
 * @param preset one of verl's decoupled presets, such as {@code decoupled_k3_rs_token_tis}, with its own thresholds;
 *     empty where the settings below say what to do
 * @param compare which two policies are compared
 * @param rolloutIs weights per {@code token} or per {@code sequence}; empty for none
 * @param rolloutIsThreshold {@code upper} truncates weights at it, {@code lower_upper} sets those outside to 0
 * @param rolloutRs comma-separated rejections, such as {@code seq_mean_k3}; empty for none
 * @param rolloutRsThreshold one bound for all rejections, or one for each, comma-separated; empty without rejections
 */
public record RolloutCorrectionOptions(
        String preset,
        ComparedPolicies compare,
        String rolloutIs,
        String rolloutIsThreshold,
        String rolloutRs,
        String rolloutRsThreshold) {

    private static final String DEFAULT_IS = "token";
    private static final String DEFAULT_IS_THRESHOLD = "2.0";

    public RolloutCorrectionOptions {
        if (!preset.isEmpty()) {
            refuseBeside(preset, "rollout_rs", rolloutRs, "");
            refuseBeside(preset, "rollout_rs_threshold", rolloutRsThreshold, "");
            refuseBeside(preset, "rollout_is", rolloutIs, DEFAULT_IS);
            refuseBeside(preset, "rollout_is_threshold", rolloutIsThreshold, DEFAULT_IS_THRESHOLD);
        }
        resolve(preset, rolloutIs, rolloutIsThreshold, rolloutRs, rolloutRsThreshold);
    }

    private static void refuseBeside(String preset, String key, String value, String byDefault) {
        if (!value.equals(byDefault)) {
            throw new IllegalArgumentException(key + " must not be set beside preset=" + preset
                    + ", which says it itself; leave one of them out: '" + value + "'");
        }
    }

    /** Token weights of proximal over behavior, truncated at 2. */
    public static RolloutCorrectionOptions defaults() {
        return new RolloutCorrectionOptions("", ComparedPolicies.ANCHOR, DEFAULT_IS, DEFAULT_IS_THRESHOLD, "", "");
    }

    /** The same without a preset: what it stands for, in the other settings. */
    public RolloutCorrectionOptions spelledOut() {
        if (preset.isEmpty()) {
            return this;
        }
        RolloutCorrectionSettings settings = Preset.labelled(preset).settings();
        boolean weighs = settings.rolloutIs() != null;
        return new RolloutCorrectionOptions(
                "",
                compare,
                nullAsEmpty(settings.rolloutIs()),
                weighs ? nullAsEmpty(settings.rolloutIsThreshold()) : "",
                nullAsEmpty(settings.rolloutRs()),
                nullAsEmpty(settings.rolloutRsThreshold()));
    }

    /** As the corrections know it. */
    RolloutCorrectionConfig resolve() {
        return resolve(preset, rolloutIs, rolloutIsThreshold, rolloutRs, rolloutRsThreshold);
    }

    /** True if tokens or sequences are rejected by how far off they are. */
    public boolean rejects() {
        return !resolve().rejections().isEmpty();
    }

    /** True if importance weights are made; else every trained token weighs 1. */
    public boolean makesWeights() {
        return resolve().weights().isPresent();
    }

    /** The bound at which weights are truncated; the largest number where none are made. */
    public double weightCap() {
        return resolve().weights().map(WeightRule::upper).orElse(Double.MAX_VALUE);
    }

    private static RolloutCorrectionConfig resolve(
            String preset, String rolloutIs, String isThreshold, String rolloutRs, String rsThreshold) {
        RolloutCorrectionConfig config = (preset.isEmpty()
                        ? new RolloutCorrectionSettings(
                                emptyAsNull(rolloutIs),
                                rolloutIs.isEmpty() ? null : emptyAsNull(isThreshold),
                                false,
                                emptyAsNull(rolloutRs),
                                emptyAsNull(rsThreshold),
                                false,
                                "ppo_clip")
                        : Preset.labelled(preset).settings())
                .resolve();
        if (config.mode() != ObjectiveMode.DECOUPLED) {
            throw new IllegalArgumentException(
                    "preset must be a decoupled one, because a bypass preset corrects inside the"
                            + " learner's update, by ratios that are not known before it; choose the learner's objective for that: "
                            + preset);
        }
        return config;
    }

    private static String nullAsEmpty(@Nullable String text) {
        return text == null ? "" : text;
    }

    private static @Nullable String emptyAsNull(String text) {
        return text.isEmpty() ? null : text;
    }
}
