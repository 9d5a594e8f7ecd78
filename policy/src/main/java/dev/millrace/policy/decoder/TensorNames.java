package dev.millrace.policy.decoder;

/** The names Hugging Face gives to the tensors of a checkpoint; a value head is this project's own. */
final class TensorNames {
    static final String EMBEDDING = "model.embed_tokens.weight";
    static final String FINAL_NORM = "model.norm.weight";
    static final String HEAD = "lm_head.weight";
    static final String VALUE_WEIGHT = "value_head.weight";
    static final String VALUE_BIAS = "value_head.bias";

    private TensorNames() {}

    static String inputNorm(int layer) {
        return layer(layer) + "input_layernorm.weight";
    }

    static String postAttentionNorm(int layer) {
        return layer(layer) + "post_attention_layernorm.weight";
    }

    static String query(int layer) {
        return layer(layer) + "self_attn.q_proj";
    }

    static String key(int layer) {
        return layer(layer) + "self_attn.k_proj";
    }

    static String value(int layer) {
        return layer(layer) + "self_attn.v_proj";
    }

    static String queryNorm(int layer) {
        return layer(layer) + "self_attn.q_norm.weight";
    }

    static String keyNorm(int layer) {
        return layer(layer) + "self_attn.k_norm.weight";
    }

    static String attentionOutput(int layer) {
        return layer(layer) + "self_attn.o_proj";
    }

    static String gate(int layer) {
        return layer(layer) + "mlp.gate_proj";
    }

    static String up(int layer) {
        return layer(layer) + "mlp.up_proj";
    }

    static String down(int layer) {
        return layer(layer) + "mlp.down_proj";
    }

    static String router(int layer) {
        return layer(layer) + "mlp.gate.weight";
    }

    static String expert(int layer, int expert) {
        return layer(layer) + "mlp.experts." + expert + ".";
    }

    private static String layer(int layer) {
        return "model.layers." + layer + ".";
    }
}
