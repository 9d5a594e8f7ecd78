package dev.millrace.corrections.algorithm;

import dev.millrace.corrections.rollout.RolloutCorrectionSettings;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * verl's named rollout corrections, with the same names, parameters and defaults, so that a configuration that names
 * one can be carried over.
 *
 * <p>The name says what it does: {@code decoupled} keeps three policies apart, {@code bypass} takes old := behavior;
 * {@code is} and {@code tis} are truncated weights per token or sequence, {@code icepop} band-masked ones; {@code
 * geo_rs} rejects sequences by the geometric mean of their ratios, {@code k3_rs} by their mean k3; {@code pg} is a
 * REINFORCE loss.
 */
public enum Preset {
    DECOUPLED_TOKEN_IS("token", Parameters.CAP, null, Loss.DECOUPLED),
    DECOUPLED_SEQ_IS("sequence", Parameters.CAP, null, Loss.DECOUPLED),
    DECOUPLED_TOKEN_ICEPOP("token", Parameters.BAND, null, Loss.DECOUPLED),
    DECOUPLED_SEQ_IS_RS("sequence", Parameters.CAP_AND_RATIO, "seq_sum_k1", Loss.DECOUPLED),
    DECOUPLED_GEO_RS(null, Parameters.GEO, "seq_mean_k1", Loss.DECOUPLED),
    BYPASS_PPO_CLIP(null, Parameters.NONE, null, Loss.PPO_CLIP),
    BYPASS_PPO_CLIP_GEO_RS(null, Parameters.GEO, "seq_mean_k1", Loss.PPO_CLIP),
    BYPASS_PPO_CLIP_K3_RS(null, Parameters.K3, "seq_mean_k3", Loss.PPO_CLIP),
    BYPASS_PG_IS("sequence", Parameters.CAP, null, Loss.REINFORCE),
    BYPASS_PG_TOKEN_ICEPOP("token", Parameters.BAND, null, Loss.REINFORCE),
    BYPASS_PG_GEO_RS(null, Parameters.GEO, "seq_mean_k1", Loss.REINFORCE),
    DECOUPLED_GEO_RS_SEQ_TIS("sequence", Parameters.CAP_AND_GEO, "seq_mean_k1", Loss.DECOUPLED),
    DECOUPLED_GEO_RS_TOKEN_TIS("token", Parameters.CAP_AND_GEO, "seq_mean_k1", Loss.DECOUPLED),
    BYPASS_PG_GEO_RS_SEQ_TIS("sequence", Parameters.CAP_AND_GEO, "seq_mean_k1", Loss.REINFORCE),
    BYPASS_PG_GEO_RS_TOKEN_TIS("token", Parameters.CAP_AND_GEO, "seq_mean_k1", Loss.REINFORCE),
    DECOUPLED_K3_RS(null, Parameters.K3, "seq_mean_k3", Loss.DECOUPLED),
    DECOUPLED_K3_RS_SEQ_TIS("sequence", Parameters.CAP_AND_K3, "seq_mean_k3", Loss.DECOUPLED),
    DECOUPLED_K3_RS_TOKEN_TIS("token", Parameters.CAP_AND_K3, "seq_mean_k3", Loss.DECOUPLED),
    /** No weights, no rejection: only the metrics. */
    DISABLED(null, Parameters.NONE, null, Loss.DECOUPLED);

    private static final String IDLE_IS_THRESHOLD = "2.0";

    /** Names and defaults of the parameters, in the order the settings are made from them. */
    private static final class Parameters {
        static final Map<String, String> NONE = Map.of();
        static final Map<String, String> CAP = ordered("threshold", "2.0");
        static final Map<String, String> BAND = ordered("threshold", "5.0", "threshold_lower", "0.5");
        static final Map<String, String> GEO = ordered("rs_threshold", "0.999_1.001");
        static final Map<String, String> K3 = ordered("rs_threshold", "0.01");
        static final Map<String, String> CAP_AND_RATIO = ordered("is_threshold", "2.0", "rs_threshold", "0.5_2.0");
        static final Map<String, String> CAP_AND_GEO = ordered("is_threshold", "2.0", "rs_threshold", "0.999_1.001");
        static final Map<String, String> CAP_AND_K3 = ordered("is_threshold", "2.0", "rs_threshold", "0.01");

        private static Map<String, String> ordered(String... namesAndDefaults) {
            Map<String, String> map = new LinkedHashMap<>();
            for (int i = 0; i < namesAndDefaults.length; i += 2) {
                map.put(namesAndDefaults[i], namesAndDefaults[i + 1]);
            }
            return Collections.unmodifiableMap(map);
        }
    }

    private enum Loss {
        DECOUPLED,
        PPO_CLIP,
        REINFORCE
    }

    private final @Nullable String rolloutIs;
    private final Map<String, String> parameters;
    private final @Nullable String rolloutRs;
    private final Loss loss;

    Preset(@Nullable String rolloutIs, Map<String, String> parameters, @Nullable String rolloutRs, Loss loss) {
        this.rolloutIs = rolloutIs;
        this.parameters = parameters;
        this.rolloutRs = rolloutRs;
        this.loss = loss;
    }

    /** The name in configurations, such as {@code decoupled_k3_rs_token_tis}. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Names and defaults of what can be set, in order. */
    public Map<String, String> parameters() {
        return parameters;
    }

    /** The settings with every parameter at its default. */
    public RolloutCorrectionSettings settings() {
        return settings(Map.of());
    }

    /**
     * The settings with some parameters changed.
     *
     * @param changed new values by parameter name
     * @throws IllegalArgumentException if the preset has no such parameter
     */
    public RolloutCorrectionSettings settings(Map<String, String> changed) {
        for (String name : changed.keySet()) {
            if (!parameters.containsKey(name)) {
                throw new IllegalArgumentException("preset " + label() + " has no parameter " + name + "; it has: "
                        + (parameters.isEmpty() ? "none" : String.join(", ", parameters.keySet())));
            }
        }
        Map<String, String> values = new LinkedHashMap<>(parameters);
        values.putAll(changed);
        return new RolloutCorrectionSettings(
                rolloutIs,
                isThreshold(values),
                false,
                rolloutRs,
                values.get("rs_threshold"),
                loss != Loss.DECOUPLED,
                loss == Loss.REINFORCE ? "reinforce" : "ppo_clip");
    }

    private static String isThreshold(Map<String, String> values) {
        if (values.containsKey("threshold_lower")) {
            return values.get("threshold_lower") + "_" + values.get("threshold");
        }
        return values.getOrDefault("threshold", values.getOrDefault("is_threshold", IDLE_IS_THRESHOLD));
    }

    /**
     * The preset of this name.
     *
     * @throws IllegalArgumentException listing the known names
     */
    public static Preset labelled(String label) {
        for (Preset preset : values()) {
            if (preset.label().equals(label)) {
                return preset;
            }
        }
        throw new IllegalArgumentException("unknown preset '" + label + "'; known: "
                + Arrays.stream(values()).map(Preset::label).collect(Collectors.joining(", ")));
    }
}
