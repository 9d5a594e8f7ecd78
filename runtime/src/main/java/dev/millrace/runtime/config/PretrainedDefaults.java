package dev.millrace.runtime.config;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.policy.decoder.DecoderShape;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Defaults of a run that begins with a checkpoint. The defaults for random weights would let a pretrained policy forget
 * its language. So: small steps, no entropy bonus, a KL penalty against the initial weights, and fewer responses a
 * step. Such steps change few bits of a bfloat16, so versions are stored in it.
 *
 * <p>An algorithm chosen by name keeps its own entropy bonus and KL.
 */
public final class PretrainedDefaults {
    private static final String ALGORITHM = "algorithm";
    private static final String LEARNING_RATE = "learner.step.optimizer.learning_rate";
    private static final String LORA_RANK = "/learner/lora/rank";
    private static final String DTYPE = "weights.dtype";
    private static final Map<String, String> OPTIMIZER = new LinkedHashMap<>();
    private static final Map<String, String> OF_ALGORITHM = new LinkedHashMap<>();

    static {
        OPTIMIZER.put("learner.step.optimizer.warm_up_steps", "5");
        OF_ALGORITHM.put("algorithm.entropy.bonus", "0");
        OF_ALGORITHM.put(
                "algorithm.kl",
                "{kind: in_loss, coefficient: {kind: fixed, value: 0.02}, reference: {kind: version, version: 0}}");
    }

    private PretrainedDefaults() {}

    /** Adds these defaults below the keys of a tree whose run begins with a checkpoint. */
    static void fill(ObjectNode tree, DecoderShape shape) {
        boolean named = isNamed(tree.path(ALGORITHM));
        boolean adapters = tree.at(LORA_RANK).asInt(0) > 0;
        putUnlessGiven(
                tree,
                LEARNING_RATE,
                String.valueOf(
                        adapters ? adapterLearningRate(shape.parameterCount()) : learningRate(shape.parameterCount())));
        OPTIMIZER.forEach((key, value) -> putUnlessGiven(tree, key, value));
        if (!named) {
            OF_ALGORITHM.forEach((key, value) -> putUnlessGiven(tree, key, value));
        }
        if (!isGiven(tree, "admission.batch_sequences") && !isGiven(tree, "topology.batch.sequences")) {
            putUnlessGiven(tree, "admission.batch_sequences", "64");
            putUnlessGiven(tree, "topology.batch.sequences", "64");
        }
        putUnlessGiven(tree, "generator.slots", "64");
        putUnlessGiven(tree, "goal.export_models", "true");
        putUnlessGiven(tree, DTYPE, "bf16");
    }

    /** Larger models want smaller steps; tried at 0.26 M parameters, the others are what others publish. */
    private static double learningRate(long parameters) {
        if (parameters < 10_000_000) {
            return 3e-4;
        }
        return parameters < 100_000_000 ? 3e-5 : 2e-6;
    }

    /** Adapters begin at zero and have few parameters: their learning rate is tens of times that of full weights. */
    private static double adapterLearningRate(long parameters) {
        return parameters < 10_000_000 ? 3e-3 : 1e-4;
    }

    private static boolean isNamed(JsonNode algorithm) {
        return algorithm.isTextual() || algorithm.has(ConfigTree.WORD) || algorithm.has(Variants.VARIANT);
    }

    private static boolean isGiven(ObjectNode tree, String key) {
        JsonNode at = tree;
        for (String name : key.split("\\.")) {
            if (at.isTextual()) { // a word for the whole group
                return true;
            }
            at = at.path(name);
        }
        return !at.isMissingNode();
    }

    private static void putUnlessGiven(ObjectNode tree, String key, String value) {
        if (!isGiven(tree, key)) {
            ConfigTree.set(tree, key + "=" + value);
        }
    }

    /** A start-up message with the defaults in force. */
    public static String sentence(MillraceConfig config) {
        ObjectNode tree = ConfigBinder.unbind(config);
        Map<String, String> shown = new LinkedHashMap<>();
        for (String key : new String[] {
            "learner.lora.rank",
            LEARNING_RATE,
            "learner.step.optimizer.warm_up_steps",
            "algorithm.entropy.bonus",
            "algorithm.kl.kind",
            "algorithm.kl.coefficient.value",
            "topology.batch.sequences",
            DTYPE
        }) {
            JsonNode value = tree.at("/" + key.replace('.', '/'));
            if (!value.isMissingNode()) {
                shown.put(key, value.asText());
            }
        }
        return "starts from the weights of " + config.model().checkpoint() + ", so: "
                + shown.entrySet().stream()
                        .map(entry -> entry.getKey() + "=" + entry.getValue())
                        .collect(Collectors.joining(", "))
                + "; --set changes each";
    }
}
