package dev.millrace.runtime.report;

import java.util.Map;
import java.util.Optional;

/**
 * verl's names of figures, so that curves can be overlaid. A figure has verl's name only if its definition is the same;
 * over other tokens or with another factor it keeps its own name. Metrics of verl's rollout correction ({@code
 * rollout_corr/...}) have verl's names everywhere.
 */
public final class VerlFigures {
    /** Source of the names. */
    public static final String SOURCE = "verl-project/verl@1dda039b, which is 0.10.0.dev of August 2026";

    /** Prefix of the metrics of verl's rollout correction. */
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

    /** Returns verl's name of the figure with this key; empty if verl has no equal figure. */
    public static Optional<String> name(String key) {
        return Optional.ofNullable(NAMES.get(key));
    }

    /** All of them, by our key. */
    public static Map<String, String> names() {
        return NAMES;
    }
}
