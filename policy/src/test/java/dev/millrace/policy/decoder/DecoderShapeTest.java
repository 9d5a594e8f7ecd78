package dev.millrace.policy.decoder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

class DecoderShapeTest {

    @Test
    void shouldNameAndShapeTensorsAsHuggingFaceDoes() {
        DecoderShape shape = new DecoderShape(11, 8, 1, 4, 2, 6, 20, 32, 100, 1e-6, false, true);
        assertThat(shape.tensors())
                .containsExactly(
                        TensorSpec.of("model.embed_tokens.weight", 11, 8),
                        TensorSpec.of("model.layers.0.input_layernorm.weight", 8),
                        TensorSpec.of("model.layers.0.self_attn.q_proj.weight", 24, 8),
                        TensorSpec.of("model.layers.0.self_attn.q_proj.bias", 24),
                        TensorSpec.of("model.layers.0.self_attn.k_proj.weight", 12, 8),
                        TensorSpec.of("model.layers.0.self_attn.k_proj.bias", 12),
                        TensorSpec.of("model.layers.0.self_attn.v_proj.weight", 12, 8),
                        TensorSpec.of("model.layers.0.self_attn.v_proj.bias", 12),
                        TensorSpec.of("model.layers.0.self_attn.o_proj.weight", 8, 24),
                        TensorSpec.of("model.layers.0.post_attention_layernorm.weight", 8),
                        TensorSpec.of("model.layers.0.mlp.gate_proj.weight", 20, 8),
                        TensorSpec.of("model.layers.0.mlp.up_proj.weight", 20, 8),
                        TensorSpec.of("model.layers.0.mlp.down_proj.weight", 8, 20),
                        TensorSpec.of("model.norm.weight", 8),
                        TensorSpec.of("lm_head.weight", 11, 8));
        assertThat(shape.headsPerKvHead()).isEqualTo(2);
    }

    @Test
    void shouldCountParametersWithATiedHeadOnce() {
        // 16*64 embedding; per layer 2*64 norms, 4*64*64 attention, 3*64*128 mlp; 64 final norm
        assertThat(Shapes.DEFAULT_TASK.parameterCount()).isEqualTo(1024 + 2 * (128 + 16_384 + 24_576) + 64);
    }

    @Test
    void shouldRefuseSizesThatFitNoDecoder() {
        assertThatThrownBy(() -> new DecoderShape(16, 64, 2, 4, 3, 16, 128, 64, 100, 1e-6, true, false))
                .hasMessage(
                        "kvHeads must divide heads, so that each key head serves as many query heads: heads=4, kvHeads=3");
        assertThatThrownBy(() -> new DecoderShape(16, 64, 2, 4, 4, 15, 128, 64, 100, 1e-6, true, false))
                .hasMessage("headSize must be even, rotary positions turn pairs: headSize=15");
        assertThatThrownBy(() -> new DecoderShape(1, 64, 2, 4, 4, 16, 128, 64, 100, 1e-6, true, false))
                .hasMessage("vocabSize must be at least 2: vocabSize=1");
        assertThatThrownBy(() -> new DecoderShape(16, 64, 0, 4, 4, 16, 128, 64, 100, 1e-6, true, false))
                .hasMessage("layers must be at least 1: layers=0");
        assertThatThrownBy(() -> new DecoderShape(16, 64, 2, 4, 4, 16, 128, 64, Double.NaN, 1e-6, true, false))
                .hasMessage("ropeTheta must be finite and above 1: ropeTheta=NaN");
        assertThatThrownBy(() -> new DecoderShape(16, 64, 2, 4, 4, 16, 128, 64, 100, 0, true, false))
                .hasMessage("rmsNormEps must be above 0 and below 1: rmsNormEps=0.0");
        assertThatThrownBy(() -> new TensorSpec("w", List.of(3L, 0L)))
                .hasMessage("every axis of w must be at least 1: dims=[3, 0]");
        assertThatThrownBy(() -> TensorSpec.of("w", 1L << 16, 1L << 14))
                .hasMessage(
                        "w has 1,073,741,824 numbers, and a tensor may have 536,870,911 (2 GiB of float32, which is as much as one buffer"
                                + " takes)");
    }
}
