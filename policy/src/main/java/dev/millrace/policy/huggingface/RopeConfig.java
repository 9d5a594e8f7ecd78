package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.policy.decoder.RopeScaling;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Set;

/**
 * Rotary positions in a {@code config.json}: older files have {@code rope_theta} and {@code rope_scaling}, newer ones
 * {@code rope_parameters} with both.
 */
public final class RopeConfig {
    private static final String SCALING = "rope_scaling";
    private static final String PARAMETERS = "rope_parameters";
    private static final String TYPE = "rope_type";
    private static final String THETA = "rope_theta";
    private static final String ORIGINAL = "original_max_position_embeddings";
    private static final double DEFAULT_THETA = 10_000;
    /** Keys that every type may have: its name, new and old, the base, a share of 1 of each head, and a note of older files. */
    private static final Set<String> ALWAYS = Set.of(TYPE, "type", THETA, "partial_rotary_factor", "finetuned");

    private static final Map<String, Set<String>> KEYS = Map.of(
            "default",
            Set.of("factor", ORIGINAL),
            "linear",
            Set.of("factor", ORIGINAL),
            "llama3",
            Set.of("factor", "low_freq_factor", "high_freq_factor", ORIGINAL),
            "yarn",
            Set.of(
                    "factor",
                    ORIGINAL,
                    "attention_factor",
                    "beta_fast",
                    "beta_slow",
                    "mscale",
                    "mscale_all_dim",
                    "truncate"));

    /** Keys unrelated to scaling, so that an object with only these needs no type. */
    private static final Set<String> UNTYPED = Set.of(THETA, "partial_rotary_factor");

    private final ConfigReader config;
    private final ConfigReader scaling;
    private final String name;
    private final int maxPositions;
    private final int mostPositions;

    /**
     * @param maxPositions  the config's longest sequence
     * @param mostPositions largest number of positions that any model has
     */
    RopeConfig(ConfigReader config, int maxPositions, int mostPositions) {
        this.config = config;
        this.maxPositions = maxPositions;
        this.mostPositions = mostPositions;
        ConfigReader old = config.object(SCALING);
        ConfigReader parameters = config.object(PARAMETERS);
        Optional<String> oldType = type(SCALING, old);
        Optional<String> newType = type(PARAMETERS, parameters);
        if (oldType.isPresent() && newType.isPresent() && !oldType.equals(newType)) {
            throw config.refusal(SCALING, "differs from " + PARAMETERS + "=" + parameters + "; one of them is wrong");
        }
        this.name = newType.isPresent() || oldType.isEmpty() ? PARAMETERS : SCALING;
        this.scaling = name.equals(PARAMETERS) ? parameters : old;
    }

    /**
     * Reads the scaling of a {@code config.json}, or of a text with the same keys.
     *
     * @param source its name in messages
     * @throws CheckpointException naming key and value that are not supported
     */
    public static RopeScaling scaling(String source, JsonNode config) {
        int maxPositions = config.path("max_position_embeddings").asInt();
        return new RopeConfig(new ConfigReader(source, config), maxPositions, Integer.MAX_VALUE).scaling();
    }

    /** Given in up to three places, which must agree. */
    double theta() {
        OptionalDouble theta = OptionalDouble.empty();
        for (ConfigReader each : List.of(config, config.object(SCALING), config.object(PARAMETERS))) {
            if (each.has(THETA)) {
                double said = each.number(THETA);
                if (theta.orElse(said) != said) {
                    throw each.refusal(
                            THETA, "differs from the " + theta.getAsDouble() + " next to it; one of them is wrong");
                }
                theta = OptionalDouble.of(said);
            }
        }
        return theta.orElse(DEFAULT_THETA);
    }

    RopeScaling scaling() {
        String type = type(name, scaling).orElse("default");
        Set<String> known = KEYS.get(type);
        if (known == null) {
            throw config.refusal(
                    name,
                    "rotary positions of type " + type
                            + " are not supported; supported are default, linear, llama3 and yarn");
        }
        for (String key : scaling.keys()) {
            if (!ALWAYS.contains(key) && !known.contains(key)) {
                throw config.refusal(name, "the key " + key + " is not known for rotary positions of type " + type);
            }
        }
        for (ConfigReader each : new ConfigReader[] {config, scaling}) {
            if (each.number("partial_rotary_factor", 1) != 1) {
                throw each.refusal("partial_rotary_factor", "positions that turn a part of a head are not supported");
            }
        }
        return switch (type) {
            case "linear" -> new RopeScaling.Linear(scaling.number("factor"));
            case "llama3" ->
                new RopeScaling.Llama3(
                        scaling.number("factor"),
                        scaling.number("low_freq_factor"),
                        scaling.number("high_freq_factor"),
                        scaling.integer(ORIGINAL, mostPositions));
            case "yarn" -> yarn();
            default -> new RopeScaling.None();
        };
    }

    private RopeScaling yarn() {
        int original = scaling.has(ORIGINAL) ? scaling.integer(ORIGINAL, mostPositions) : maxPositions;
        double factor = scaling.number("factor", (double) maxPositions / original);
        // Zero means unset, as in transformers.
        double paper = scaling.number("mscale", 0) != 0 && scaling.number("mscale_all_dim", 0) != 0
                ? sharpening(factor, "mscale") / sharpening(factor, "mscale_all_dim")
                : RopeScaling.Yarn.paperFactor(factor);
        return new RopeScaling.Yarn(
                factor,
                original,
                scaling.number("beta_fast", 32),
                scaling.number("beta_slow", 1),
                scaling.number("attention_factor", paper),
                !scaling.has("truncate") || scaling.flag("truncate"));
    }

    private double sharpening(double factor, String key) {
        return 1 + scaling.number(key) * (RopeScaling.Yarn.paperFactor(factor) - 1);
    }

    private static Optional<String> type(String name, ConfigReader scaling) {
        if (!scaling.has(TYPE) && !scaling.has("type")) {
            for (String key : scaling.keys()) {
                if (!UNTYPED.contains(key)) {
                    throw scaling.refusal(key, "says something of a scaling that has no " + TYPE);
                }
            }
            return Optional.empty();
        }
        String type = scaling.text(TYPE, scaling.text("type", ""));
        if (!scaling.text("type", type).equals(type)) {
            throw scaling.refusal(
                    "type", "differs from " + TYPE + "=" + type + " in " + name + "; one of them is wrong");
        }
        return Optional.of(type);
    }

    /** The object under {@code rope_scaling}; nothing for plain positions. */
    public static Optional<ObjectNode> write(RopeScaling scaling) {
        ObjectNode json = new ObjectMapper().createObjectNode();
        if (scaling instanceof RopeScaling.Linear linear) {
            return Optional.of(json.put(TYPE, "linear").put("factor", linear.factor()));
        }
        if (scaling instanceof RopeScaling.Llama3 llama3) {
            return Optional.of(json.put(TYPE, "llama3")
                    .put("factor", llama3.factor())
                    .put("low_freq_factor", llama3.lowFreqFactor())
                    .put("high_freq_factor", llama3.highFreqFactor())
                    .put(ORIGINAL, llama3.originalMaxPositions()));
        }
        if (scaling instanceof RopeScaling.Yarn yarn) {
            return Optional.of(json.put(TYPE, "yarn")
                    .put("factor", yarn.factor())
                    .put(ORIGINAL, yarn.originalMaxPositions())
                    .put("beta_fast", yarn.betaFast())
                    .put("beta_slow", yarn.betaSlow())
                    .put("attention_factor", yarn.attentionFactor())
                    .put("truncate", yarn.truncate()));
        }
        return Optional.empty();
    }
}
