package dev.millrace.weights;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.DecoderTraits;
import dev.millrace.policy.decoder.Experts;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.huggingface.CheckpointException;
import dev.millrace.policy.huggingface.RopeConfig;

/**
 * A decoder's shape as the JSON object of a manifest, with the names of Hugging Face's {@code config.json}.
 *
 * <p>Equal shapes give equal text.
 */
public final class ShapeText {
    private static final ObjectMapper JSON = new ObjectMapper();

    private ShapeText() {}

    public static String of(DecoderShape shape) {
        ObjectNode node = JSON.createObjectNode();
        node.put("vocab_size", shape.vocabSize());
        node.put("hidden_size", shape.hiddenSize());
        node.put("num_hidden_layers", shape.layers());
        node.put("num_attention_heads", shape.heads());
        node.put("num_key_value_heads", shape.kvHeads());
        node.put("head_dim", shape.headSize());
        node.put("intermediate_size", shape.intermediateSize());
        node.put("max_position_embeddings", shape.maxPositions());
        node.put("rope_theta", shape.ropeTheta());
        node.put("rms_norm_eps", shape.rmsNormEps());
        node.put("tie_word_embeddings", shape.tiedHead());
        node.put("attention_bias", shape.qkvBias());
        put(shape.traits(), node);
        flag(node, "value_head", shape.valueHead());
        if (shape.cutsTensors()) {
            node.put("max_tensor_elements", shape.maxTensorElements());
        }
        return node.toString();
    }

    /** @throws IllegalArgumentException naming the key that is missing or of another kind */
    public static DecoderShape parse(String text) {
        JsonNode node;
        try {
            node = JSON.readTree(text);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException("a decoder's shape must be a JSON object: " + text, e);
        }
        return new DecoderShape(
                integer(node, "vocab_size"),
                integer(node, "hidden_size"),
                integer(node, "num_hidden_layers"),
                integer(node, "num_attention_heads"),
                integer(node, "num_key_value_heads"),
                integer(node, "head_dim"),
                integer(node, "intermediate_size"),
                integer(node, "max_position_embeddings"),
                number(node, "rope_theta").asDouble(),
                number(node, "rms_norm_eps").asDouble(),
                bool(node, "tie_word_embeddings"),
                bool(node, "attention_bias"),
                traits(node),
                node.has("max_tensor_elements") ? integer(node, "max_tensor_elements") : TensorSpec.MOST_ELEMENTS,
                node.has("value_head") && bool(node, "value_head"));
    }

    /** Leaves out values of the plain decoder, so that its text never changes. */
    private static void put(DecoderTraits traits, ObjectNode node) {
        RopeConfig.write(traits.ropeScaling()).ifPresent(scaling -> node.set("rope_scaling", scaling));
        flag(node, "attention_output_bias", traits.outputBias());
        flag(node, "mlp_bias", traits.mlpBias());
        flag(node, "query_key_norm", traits.queryKeyNorm());
        if (traits.slidingWindow() > 0) {
            node.put("sliding_window", traits.slidingWindow());
            node.put("max_window_layers", traits.fullLayers());
        }
        Experts experts = traits.experts();
        if (experts.present()) {
            node.put("num_experts", experts.count());
            node.put("num_experts_per_tok", experts.perToken());
            node.put("moe_intermediate_size", experts.width());
            flag(node, "norm_topk_prob", experts.normalised());
        }
    }

    private static void flag(ObjectNode node, String key, boolean value) {
        if (value) {
            node.put(key, true);
        }
    }

    private static DecoderTraits traits(JsonNode node) {
        try {
            return new DecoderTraits(
                    RopeConfig.scaling("a decoder's shape", node),
                    node.has("attention_output_bias") && bool(node, "attention_output_bias"),
                    node.has("mlp_bias") && bool(node, "mlp_bias"),
                    node.has("query_key_norm") && bool(node, "query_key_norm"),
                    node.has("sliding_window") ? integer(node, "sliding_window") : 0,
                    node.has("sliding_window") ? integer(node, "max_window_layers") : 0,
                    node.has("num_experts") ? experts(node) : Experts.NONE);
        } catch (CheckpointException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    private static Experts experts(JsonNode node) {
        return new Experts(
                integer(node, "num_experts"),
                integer(node, "num_experts_per_tok"),
                integer(node, "moe_intermediate_size"),
                node.has("norm_topk_prob") && bool(node, "norm_topk_prob"));
    }

    private static int integer(JsonNode node, String key) {
        JsonNode value = number(node, key);
        if (!value.canConvertToInt() || !value.isIntegralNumber()) {
            throw new IllegalArgumentException("a decoder's shape needs a whole number " + key + ": " + value);
        }
        return value.intValue();
    }

    private static JsonNode number(JsonNode node, String key) {
        JsonNode value = node.path(key);
        if (!value.isNumber()) {
            throw new IllegalArgumentException("a decoder's shape needs a number " + key + ": " + node);
        }
        return value;
    }

    private static boolean bool(JsonNode node, String key) {
        JsonNode value = node.path(key);
        if (!value.isBoolean()) {
            throw new IllegalArgumentException("a decoder's shape needs true or false as " + key + ": " + node);
        }
        return value.booleanValue();
    }
}
