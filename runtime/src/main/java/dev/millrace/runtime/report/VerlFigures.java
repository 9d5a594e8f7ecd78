package dev.millrace.runtime.report;

import java.util.Map;
import java.util.Optional;

/**
 * What verl calls a figure, so that a curve of ours lies over one of verl's. A name of verl's stands only where the figure is the
 * same: of another set of tokens, or with another factor in it, it keeps a name of its own. What verl's own correction reports
 * ({@code rollout_corr/...}) has verl's names everywhere.
 */
public final class VerlFigures {
    /** Where the names are from. */
    public static final String SOURCE = "verl-project/verl@1dda039b, which is 0.10.0.dev of August 2026";

    /** The beginning of what verl's correction reports. */
    public static final String CORRECTION = "rollout_corr/";

    private static final Map<String, String> NAMES = Map.ofEntries(
            Map.entry("step", "training/global_step"),
            Map.entry("version", "fully_async/count/current_param_version"),
            Map.entry("reward", "critic/score/mean"),
            Map.entry("learning_rate", "actor/lr"),
            Map.entry("loss", "actor/loss"),
            Map.entry("policy_loss", "actor/pg_loss"),
            Map.entry("kl.loss", "actor/kl_loss"),
            Map.entry("value_loss", "critic/vf_loss"),
            Map.entry("value_clip_fraction", "critic/vf_clipfrac"),
            Map.entry("explained_variance", "critic/vf_explained_var"),
            Map.entry("grad_norm", "actor/grad_norm"),
            Map.entry("entropy", "actor/entropy"),
            Map.entry("approx_kl_proximal", "actor/ppo_kl"),
            Map.entry("clip_fraction", "actor/pg_clipfrac"),
            Map.entry("clip_fraction_lower", "actor/pg_clipfrac_lower"),
            Map.entry("response_tokens_mean", "response_length/mean"),
            Map.entry("response_tokens_max", "response_length/max"),
            Map.entry("idle_ratio", "fully_async/trainer/idle_ratio"));

    private VerlFigures() {}

    /** Its name of the figure with this key; empty if it has none that is the same. */
    public static Optional<String> name(String key) {
        return Optional.ofNullable(NAMES.get(key));
    }

    /** All of them, by our key. */
    public static Map<String, String> names() {
        return NAMES;
    }
}
