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
        String type = json.path("model_type").asText();
        if (!type.equals(LLAMA) && !type.equals(QWEN2)) {
            throw refusal("model_type", "must be llama or qwen2");
        }
        if (!json.path("hidden_act").asText("silu").equals("silu")) {
            throw refusal("hidden_act", "must be silu");
        }
        refuseTrue("attention_bias", "biases on the output projection are not supported");
        refuseTrue("mlp_bias", "biases in the feed-forward layers are not supported");
        refuseTrue("use_sliding_window", "sliding windows are not supported");
        int heads = required("num_attention_heads").asInt();
        int hidden = required("hidden_size").asInt();
        boolean hasHeadSize = json.hasNonNull("head_dim");
        if (!hasHeadSize && (heads < 1 || hidden % heads != 0)) {
            throw refusal(
                    "hidden_size", "must be a multiple of num_attention_heads=" + heads + " when there is no head_dim");
        }
        try {
            return new DecoderShape(
                    required("vocab_size").asInt(),
                    hidden,
                    required("num_hidden_layers").asInt(),
                    heads,
                    json.path("num_key_value_heads").asInt(heads),
                    hasHeadSize ? json.get("head_dim").asInt() : hidden / heads,
                    required("intermediate_size").asInt(),
                    required("max_position_embeddings").asInt(),
                    ropeTheta(),
                    required("rms_norm_eps").asDouble(),
                    json.path("tie_word_embeddings").asBoolean(false),
                    type.equals(QWEN2));
        } catch (IllegalArgumentException e) {
            throw new CheckpointException(source + ": " + e.getMessage(), e);
        }
    }

    /** Older files have {@code rope_theta} and {@code rope_scaling}, newer ones {@code rope_parameters} with both. */
    private double ropeTheta() {
        JsonNode parameters = json.path("rope_parameters");
        for (JsonNode scaling : new JsonNode[] {json.path("rope_scaling"), parameters}) {
            String type = scaling.path("rope_type").asText(scaling.path("type").asText("default"));
            if (!type.equals("default")) {
                throw new CheckpointException(
                        source + ": rotary positions of type " + type + " are not supported, only default ones");
            }
        }
        return parameters.path("rope_theta").asDouble(json.path("rope_theta").asDouble(DEFAULT_ROPE_THETA));
    }

    private void refuseTrue(String key, String reason) {
        if (json.path(key).asBoolean(false)) {
            throw refusal(key, reason);
        }
    }

    private JsonNode required(String key) {
        if (!json.path(key).isNumber()) {
            throw refusal(key, "must be a number");
        }
        return json.get(key);
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
