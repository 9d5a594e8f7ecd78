package dev.millrace.corrections.rollout;

import dev.millrace.corrections.rollout.RolloutCorrectionConfig.ObjectiveMode;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The settings of a rollout correction as people write them, with verl's names and texts, so that a configuration can
 * be carried over by copying it. This is the edge where texts become types; nothing behind it sees them.
 *
 * @param rolloutIs {@code token}, {@code sequence}, or null for no weights
 * @param rolloutIsThreshold {@code upper} (truncated) or {@code lower_upper} (IcePop); null for no weights
 * @param rolloutIsBatchNormalize whether weights are divided by their batch mean
 * @param rolloutRs comma-separated {@link RejectionMode} labels, duplicates ignored; null for no rejection
 * @param rolloutRsThreshold one bound for all of them, or one each, comma-separated: {@code upper} for k2 and k3,
 *     {@code lower_upper} in ratios for k1, where {@code u} alone means {@code 1/u_u} and is at least 1; needed with {@code rolloutRs}
 * @param bypassMode whether old := behavior
 * @param lossType {@code ppo_clip} or {@code reinforce}; the second needs bypass mode
 */
public record RolloutCorrectionSettings(
        @Nullable String rolloutIs,
        @Nullable String rolloutIsThreshold,
        boolean rolloutIsBatchNormalize,
        @Nullable String rolloutRs,
        @Nullable String rolloutRsThreshold,
        boolean bypassMode,
        String lossType) {
    /** What verl's constructor gives without arguments: sequence weights truncated at 2, decoupled. */
    public static final RolloutCorrectionSettings DEFAULTS =
            new RolloutCorrectionSettings("sequence", "2.0", false, null, null, false, "ppo_clip");

    private static final String IS_THRESHOLD = "rollout_is_threshold";
    private static final String RS_THRESHOLD = "rollout_rs_threshold";

    /**
     * The typed configuration, read as Millrace reads it.
     *
     * @throws IllegalArgumentException naming the setting, its value and the way out
     */
    public RolloutCorrectionConfig resolve() {
        return resolve(Semantics.MILLRACE);
    }

    /**
     * The typed configuration.
     *
     * @throws IllegalArgumentException naming the setting, its value and the way out
     */
    public RolloutCorrectionConfig resolve(Semantics semantics) {
        RolloutCorrectionConfig config = new RolloutCorrectionConfig(
                weights(), rolloutIsBatchNormalize, rejections(semantics), mode(), semantics);
        if (semantics == Semantics.MILLRACE) {
            refuseContradictions(config);
        }
        return config;
    }

    private Optional<WeightRule> weights() {
        if (rolloutIs == null || rolloutIsThreshold == null) {
            return Optional.empty();
        }
        WeightRule.Level level = switch (rolloutIs) {
            case "token" -> WeightRule.Level.TOKEN;
            case "sequence" -> WeightRule.Level.SEQUENCE;
            default ->
                throw new IllegalArgumentException(
                        "rollout_is must be token, sequence or not set: '" + rolloutIs + "'");
        };
        return Optional.of(WeightRule.of(IS_THRESHOLD, level, rolloutIsThreshold));
    }

    private List<RejectionRule> rejections(Semantics semantics) {
        if (rolloutRs == null) {
            return List.of();
        }
        if (rolloutRsThreshold == null) {
            throw new IllegalArgumentException("rollout_rs=" + rolloutRs + " needs rollout_rs_threshold");
        }
        List<RejectionMode> modes = modes(rolloutRs);
        List<String> specs = parts(rolloutRsThreshold);
        if (specs.size() != 1 && specs.size() != modes.size()) {
            throw new IllegalArgumentException("rollout_rs_threshold needs one bound for all options or one "
                    + "for each of " + modes.size() + ": '" + rolloutRsThreshold + "'");
        }
        List<RejectionRule> rules = new ArrayList<>();
        for (int i = 0; i < modes.size(); i++) {
            rules.add(rule(modes.get(i), specs.get(specs.size() == 1 ? 0 : i), semantics));
        }
        return rules;
    }

    private static List<RejectionMode> modes(String rolloutRs) {
        LinkedHashSet<RejectionMode> modes = new LinkedHashSet<>();
        for (String label : parts(rolloutRs)) {
            modes.add(RejectionMode.labelled(label));
        }
        if (modes.isEmpty()) {
            throw new IllegalArgumentException("rollout_rs must name at least one option: '" + rolloutRs + "'");
        }
        return List.copyOf(modes);
    }

    private static RejectionRule rule(RejectionMode mode, String spec, Semantics semantics) {
        int bar = spec.indexOf('_');
        if (!mode.isTwoSided()) {
            if (bar >= 0) {
                throw new IllegalArgumentException(
                        "rollout_rs_threshold for " + mode.label() + " must be a single upper bound: '" + spec + "'");
            }
            double upper = positive(mode, ThresholdText.number(RS_THRESHOLD, spec));
            return semantics == Semantics.MILLRACE
                    ? RejectionRule.atMost(mode, upper)
                    : RejectionRule.within(mode, 0.0, upper);
        }
        double upper = positive(mode, ThresholdText.number(RS_THRESHOLD, spec.substring(bar + 1)));
        if (bar < 0 && upper < 1.0) {
            throw new IllegalArgumentException("rollout_rs_threshold=" + spec + " for " + mode.label()
                    + ": a bound u alone means the ratios from 1/u to u, and none lies there if u is below 1; write both"
                    + " bounds as lower_upper, or one of at least 1");
        }
        double lower =
                bar < 0 ? 1.0 / upper : positive(mode, ThresholdText.number(RS_THRESHOLD, spec.substring(0, bar)));
        return semantics == Semantics.MILLRACE
                ? RejectionRule.ratioBand(mode, lower, upper)
                : RejectionRule.within(mode, Math.log(lower), Math.log(upper));
    }

    private static double positive(RejectionMode mode, double bound) {
        if (!(bound > 0)) {
            throw new IllegalArgumentException(
                    "rollout_rs_threshold for " + mode.label() + " must be positive: " + bound);
        }
        return bound;
    }

    private static List<String> parts(String list) {
        List<String> parts = new ArrayList<>();
        for (String part : list.split(",")) {
            if (!part.isBlank()) {
                parts.add(part.strip());
            }
        }
        return parts;
    }

    private ObjectiveMode mode() {
        if (!lossType.equals("ppo_clip") && !lossType.equals("reinforce")) {
            throw new IllegalArgumentException("loss_type must be ppo_clip or reinforce: '" + lossType + "'");
        }
        if (!bypassMode) {
            return ObjectiveMode.DECOUPLED;
        }
        return lossType.equals("reinforce") ? ObjectiveMode.BYPASS_REINFORCE : ObjectiveMode.BYPASS_PPO_CLIP;
    }

    private void refuseContradictions(RolloutCorrectionConfig config) {
        if (rolloutIs != null && rolloutIsThreshold == null) {
            throw new IllegalArgumentException("rollout_is=" + rolloutIs + " needs rollout_is_threshold; to have no "
                    + "weights, leave rollout_is unset");
        }
        if (rolloutRs == null && rolloutRsThreshold != null) {
            throw new IllegalArgumentException("rollout_rs_threshold=" + rolloutRsThreshold + " does nothing without "
                    + "rollout_rs; set rollout_rs or drop the threshold");
        }
        if (rolloutIsBatchNormalize && rolloutIs == null) {
            throw new IllegalArgumentException("rollout_is_batch_normalize=true does nothing without rollout_is");
        }
        if (!bypassMode && lossType.equals("reinforce")) {
            throw new IllegalArgumentException("loss_type=reinforce acts in bypass mode only; set bypass_mode=true");
        }
        if (config.mode() == ObjectiveMode.BYPASS_PPO_CLIP && rolloutIs != null) {
            throw new IllegalArgumentException("rollout_is=" + rolloutIs + " is not applied by bypass_mode=true with "
                    + "loss_type=ppo_clip, whose ratio is the correction; unset rollout_is or take "
                    + "loss_type=reinforce");
        }
        config.weights().ifPresent(rule -> rule.requireOneWithin("rollout_is_threshold=" + rolloutIsThreshold));
    }
}
