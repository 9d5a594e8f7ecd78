package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.policy.decoder.DecoderShape;

/** {@code config.json} of Llama and Qwen2 models, to and from our description. */
final class HuggingFaceConfig {
    private static final String LLAMA = "llama";
    private static final String QWEN2 = "qwen2";
    private static final double DEFAULT_ROPE_THETA = 10_000;
    private static final int MOST_TOKENS = 1 << 27;
    private static final int MOST_WIDTH = 1 << 20;
    private static final int MOST_LAYERS = 10_000;

    private final String source;
    private final JsonNode json;

    private HuggingFaceConfig(String source, JsonNode json) {
        this.source = source;
        this.json = json;
    }

    /** @param source what to call the file in a refusal */
    static DecoderShape read(String source, JsonNode json) {
        return new HuggingFaceConfig(source, json).shape();
    }

    private DecoderShape shape() {
        String type = text(json, "model_type", "");
        if (!type.equals(LLAMA) && !type.equals(QWEN2)) {
            throw refusal("model_type", "must be llama or qwen2");
        }
        if (!text(json, "hidden_act", "silu").equals("silu")) {
            throw refusal("hidden_act", "must be silu");
        }
        refuseTrue("attention_bias", "biases on the output projection are not supported");
        refuseTrue("mlp_bias", "biases in the feed-forward layers are not supported");
        refuseTrue("use_sliding_window", "sliding windows are not supported");
        int heads = integer("num_attention_heads", MOST_WIDTH);
        int hidden = integer("hidden_size", MOST_WIDTH);
        boolean hasHeadSize = json.hasNonNull("head_dim");
        if (!hasHeadSize && hidden % heads != 0) {
            throw refusal(
                    "hidden_size", "must be a multiple of num_attention_heads=" + heads + " when there is no head_dim");
        }
        try {
            DecoderShape shape = new DecoderShape(
                    integer("vocab_size", MOST_TOKENS),
                    hidden,
                    integer("num_hidden_layers", MOST_LAYERS),
                    heads,
                    json.hasNonNull("num_key_value_heads") ? integer("num_key_value_heads", MOST_WIDTH) : heads,
                    hasHeadSize ? integer("head_dim", MOST_WIDTH) : hidden / heads,
                    integer("intermediate_size", MOST_WIDTH),
                    integer("max_position_embeddings", MOST_TOKENS),
                    ropeTheta(),
                    number(json, "rms_norm_eps", Double.NaN),
                    flag("tie_word_embeddings"),
                    type.equals(QWEN2));
            shape.tensors(); // each must fit a buffer
            return shape;
        } catch (IllegalArgumentException | ArithmeticException e) {
            throw new CheckpointException(source + ": " + e.getMessage(), e);
        }
    }

    /** Older files have {@code rope_theta} and {@code rope_scaling}, newer ones {@code rope_parameters} with both. */
    private double ropeTheta() {
        JsonNode parameters = json.path("rope_parameters");
        for (JsonNode scaling : new JsonNode[] {json.path("rope_scaling"), parameters}) {
            if (!scaling.isMissingNode() && !scaling.isNull() && !scaling.isObject()) {
                throw new CheckpointException(
                        source + ": rotary positions must be described by keys and values: " + scaling);
            }
            String type = text(scaling, "rope_type", text(scaling, "type", "default"));
            if (!type.equals("default")) {
                throw new CheckpointException(
                        source + ": rotary positions of type " + type + " are not supported, only default ones");
            }
        }
        return number(parameters, "rope_theta", number(json, "rope_theta", DEFAULT_ROPE_THETA));
    }

    private void refuseTrue(String key, String reason) {
        if (flag(key)) {
            throw refusal(key, reason);
        }
    }

    private boolean flag(String key) {
        JsonNode value = json.path(key);
        if (json.hasNonNull(key) && !value.isBoolean()) {
            throw refusal(key, "must be true or false");
        }
        return value.booleanValue();
    }

    private String text(JsonNode of, String key, String byDefault) {
        JsonNode value = of.path(key);
        if (of.hasNonNull(key) && !value.isTextual()) {
            throw new CheckpointException(source + ": " + key + "=" + value + ": must be a text");
        }
        return value.asText(byDefault);
    }

    /** NaN as the default is a number that must be there. */
    private double number(JsonNode of, String key, double byDefault) {
        JsonNode value = of.path(key);
        if (!of.hasNonNull(key) && !Double.isNaN(byDefault)) {
            return byDefault;
        }
        if (!value.isNumber()) {
            throw new CheckpointException(source + ": " + key + "=" + value + ": must be a number");
        }
        return value.doubleValue();
    }

    /** A fraction or a number of another size would otherwise become some other whole number. */
    private int integer(String key, int most) {
        JsonNode value = json.path(key);
        if (!value.isIntegralNumber() || !value.canConvertToInt() || value.intValue() < 1 || value.intValue() > most) {
            throw refusal(key, "must be a whole number from 1 to " + most);
        }
        return value.intValue();
    }

    private CheckpointException refusal(String key, String reason) {
        return new CheckpointException(source + ": " + key + "=" + json.path(key) + ": " + reason);
    }

    static ObjectNode write(DecoderShape shape) {
        ObjectNode json = new ObjectMapper().createObjectNode();
        json.putArray("architectures").add(shape.qkvBias() ? "Qwen2ForCausalLM" : "LlamaForCausalLM");
        return json.put("model_type", shape.qkvBias() ? QWEN2 : LLAMA)
                .put("vocab_size", shape.vocabSize())
                .put("hidden_size", shape.hiddenSize())
                .put("num_hidden_layers", shape.layers())
                .put("num_attention_heads", shape.heads())
                .put("num_key_value_heads", shape.kvHeads())
                .put("head_dim", shape.headSize())
                .put("intermediate_size", shape.intermediateSize())
                .put("max_position_embeddings", shape.maxPositions())
                .put("rope_theta", shape.ropeTheta())
                .put("rms_norm_eps", shape.rmsNormEps())
                .put("tie_word_embeddings", shape.tiedHead())
                .put("hidden_act", "silu")
                .put("torch_dtype", "float32");
    }
}
