package dev.millrace.policy.decoder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

class LoraShapeTest {
    @Test
    void shouldNameAAndBOfEveryTargetInTheDecodersOrder() {
        LoraShape shape = new LoraShape(2, 6, List.of("down_proj", "k_proj"));

        assertThat(shape.tensors(Shapes.ONE_KEY_HEAD))
                .containsExactly(
                        TensorSpec.of("model.layers.0.self_attn.k_proj.lora_A.weight", 2, 12),
                        TensorSpec.of("model.layers.0.self_attn.k_proj.lora_B.weight", 8, 2),
                        TensorSpec.of("model.layers.0.mlp.down_proj.lora_A.weight", 2, 10),
                        TensorSpec.of("model.layers.0.mlp.down_proj.lora_B.weight", 12, 2));
        assertThat(shape.scale()).isEqualTo(3f);
        assertThat(shape.parameterCount(Shapes.ONE_KEY_HEAD)).isEqualTo(24 + 16 + 20 + 24);
    }

    @Test
    void shouldAdaptEveryLinearLayerOfEveryBlockAndNothingElse() {
        assertThat(new LoraShape(1, 1, LoraShape.MODULES).adapted(Shapes.ALL_TRAITS))
                .extracting(TensorSpec::name)
                .hasSize(2 * 7)
                .noneMatch(name -> name.contains("norm") || name.contains("bias") || name.contains("embed"))
                .doesNotContain("lm_head.weight");
    }

    @Test
    void shouldRefuseWhatIsNoAdapter() {
        assertThatThrownBy(() -> new LoraShape(0, 1, LoraShape.MODULES)).hasMessage("rank must be at least 1: 0");
        assertThatThrownBy(() -> new LoraShape(1, Double.NaN, LoraShape.MODULES))
                .hasMessage("alpha must be finite and above 0: NaN");
        assertThatThrownBy(() -> new LoraShape(1, 0, LoraShape.MODULES))
                .hasMessage("alpha must be finite and above 0: 0.0");
        assertThatThrownBy(() -> new LoraShape(1, 1, List.of()))
                .hasMessageStartingWith("target_modules must name a linear layer at least, of [q_proj, k_proj");
        assertThatThrownBy(() -> new LoraShape(1, 1, List.of("lm_head")))
                .hasMessageStartingWith(
                        "target_modules names lm_head, which is not a linear layer of a decoder's block");
        assertThatThrownBy(() -> new LoraShape(1, 1, List.of("q_proj", "q_proj")))
                .hasMessage("target_modules names a layer twice: [q_proj, q_proj]");
        assertThatThrownBy(() -> new LoraShape(9, 1, List.of("k_proj")).tensors(Shapes.ONE_KEY_HEAD))
                .hasMessage("rank is 9, and model.layers.0.self_attn.k_proj.weight is 8 x 12, which has no higher rank"
                        + " than 8; give a smaller rank, or leave the layer out of target_modules");
    }
}
