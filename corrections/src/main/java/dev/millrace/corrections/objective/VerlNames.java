package dev.millrace.corrections.objective;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/**
 * verl's names of losses and aggregations, and what they are called here: one table for everyone who reads verl's settings.
 *
 * <p>Source: verl's {@code core_algos}, registered policy losses and {@code agg_loss}.
 */
public final class VerlNames {
    private static final Map<String, String> OBJECTIVES = objectives();
    private static final Map<String, String> AGGREGATIONS = Map.of(
            "token-mean", "token_mean",
            "token-sum", "token_sum",
            "seq-mean-token-sum", "seq_mean_token_sum",
            "seq-mean-token-sum-norm", "seq_mean_token_sum_norm",
            "seq-mean-token-mean", "seq_mean_token_mean");

    private VerlNames() {}

    /**
     * The objective's kind for a {@code loss_mode}.
     *
     * @throws IllegalArgumentException if verl has no such loss, or one of its options has no default and is not given
     */
    public static String objective(String lossMode, Set<String> options) {
        String kind = OBJECTIVES.get(lossMode);
        if (kind == null) {
            throw new IllegalArgumentException(
                    "loss_mode must be one of " + String.join(", ", OBJECTIVES.keySet()) + ": '" + lossMode + "'");
        }
        if (lossMode.equals("dro") && !options.contains("dro_beta")) {
            throw new IllegalArgumentException(
                    "loss_mode dro needs dro_beta: without its leash it would be the plain policy gradient, and verl gives it no default");
        }
        return kind;
    }

    /**
     * The aggregation's kind for a {@code loss_agg_mode}.
     *
     * @throws IllegalArgumentException if verl has no such mode
     */
    public static String aggregation(String lossAggMode) {
        String kind = AGGREGATIONS.get(lossAggMode);
        if (kind == null) {
            throw new IllegalArgumentException("loss_agg_mode must be one of "
                    + String.join(", ", AGGREGATIONS.keySet().stream().sorted().toList()) + ": '" + lossAggMode + "'");
        }
        return kind;
    }

    private static Map<String, String> objectives() {
        Map<String, String> kinds = new LinkedHashMap<>();
        kinds.put("vanilla", "ppo_clip");
        kinds.put("dppo_tv", "dppo_tv");
        kinds.put("dppo_kl", "dppo_kl");
        kinds.put("gspo", "gspo_token"); // the paper's own gspo is another objective
        kinds.put("sapo", "sapo");
        kinds.put("gpg", "reinforce");
        kinds.put("clip_cov", "clip_cov");
        kinds.put("kl_cov", "kl_cov");
        kinds.put("geo_mean", "gmpo");
        kinds.put("cispo", "cispo");
        kinds.put("dro", "dro");
        return kinds;
    }
}
