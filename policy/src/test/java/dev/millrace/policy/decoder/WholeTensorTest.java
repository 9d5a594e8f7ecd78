package dev.millrace.policy.decoder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

class WholeTensorTest {
    private static final int LIMIT = 100;

    @Test
    void shouldLeaveWhatFitsAsItIs() {
        WholeTensor fits = WholeTensor.of(LIMIT, "w", 25, 4);
        assertThat(fits.isCut()).isFalse();
        assertThat(fits.pieces()).containsExactly(TensorSpec.of("w", 25, 4));
    }

    @Test
    void shouldCutRowsIntoAsFewAndAsEvenPiecesAsThereCanBe() {
        WholeTensor cut = WholeTensor.of(LIMIT, "w", 76, 4); // 25 rows fit, so there are four pieces, of 19 rows each
        assertThat(cut.pieces())
                .containsExactly(
                        TensorSpec.of("w[0]", 19, 4),
                        TensorSpec.of("w[1]", 19, 4),
                        TensorSpec.of("w[2]", 19, 4),
                        TensorSpec.of("w[3]", 19, 4));
        WholeTensor uneven = WholeTensor.of(LIMIT, "w", 53, 4);
        assertThat(uneven.pieces().stream().map(piece -> piece.dims().get(0))).containsExactly(17L, 18L, 18L);
        assertThat(uneven.firstRow(2)).isEqualTo(35);
        assertThat(uneven.firstRow(3)).isEqualTo(53);
        assertThat(uneven.firstElement(2)).isEqualTo(140);
        assertThat(uneven.elementCount()).isEqualTo(212);
    }

    @Test
    void shouldNamePiecesSoThatTheySortAsTheyLie() {
        List<String> names = WholeTensor.of(LIMIT, "model.w", 30, 50).pieces().stream()
                .map(TensorSpec::name)
                .toList();
        assertThat(names).hasSize(15).isSorted().startsWith("model.w[00]").endsWith("model.w[14]");
        assertThat(names).allMatch(name -> WholeTensor.nameOf(name).equals("model.w"));
        assertThat(WholeTensor.nameOf("model.w")).isEqualTo("model.w");
    }

    @Test
    void shouldCutTheEmbeddingThatNoBufferHolds() {
        DecoderShape shape = new DecoderShape(152_064, 3584, 1, 28, 4, 128, 8, 32, 1e6, 1e-6, false, true);
        assertThat(shape.cutsTensors()).isTrue();
        assertThat(shape.embedding().elementCount()).isEqualTo(544_997_376L);
        assertThat(shape.tensors())
                .startsWith(
                        TensorSpec.of("model.embed_tokens.weight[0]", 76_032, 3584),
                        TensorSpec.of("model.embed_tokens.weight[1]", 76_032, 3584))
                .endsWith(
                        TensorSpec.of("lm_head.weight[0]", 76_032, 3584),
                        TensorSpec.of("lm_head.weight[1]", 76_032, 3584));
        assertThat(shape.parameterCount())
                .isEqualTo(shape.tensors().stream()
                        .mapToLong(TensorSpec::elementCount)
                        .sum());
    }

    @Test
    void shouldBeTheSameShapeWhereALimitCutsNothing() {
        for (DecoderShape shape : Shapes.VARIED) {
            DecoderShape limited = shape.within(100_000);
            assertThat(limited).isEqualTo(shape);
            assertThat(limited.cutsTensors()).isFalse();
            assertThat(limited.maxTensorElements()).isEqualTo(TensorSpec.MOST_ELEMENTS);
            assertThat(shape.within(LIMIT)).isNotEqualTo(shape);
            assertThat(shape.within(LIMIT).within(TensorSpec.MOST_ELEMENTS)).isEqualTo(shape);
        }
    }

    @Test
    void shouldRefuseWhatCannotBeCut() {
        assertThatThrownBy(() -> WholeTensor.of(LIMIT, "w", 3, 101))
                .hasMessage(
                        "w has rows of 101 numbers, and a tensor may have 100: matrices are cut between their rows, and not within"
                                + " one; take a model with narrower layers, or raise the limit (model.max_tensor_elements) where it is below"
                                + " 536,870,911");
        assertThatThrownBy(() -> WholeTensor.of(LIMIT, "w", 101))
                .hasMessageStartingWith("w has a row of 101 numbers, and a tensor may have 100");
        assertThatThrownBy(() -> WholeTensor.of(LIMIT, "w", 65, 100))
                .hasMessageStartingWith(
                        "w has 6,500 numbers and would lie in 65 tensors of at most 100, and a matrix may lie in 64;");
        assertThatThrownBy(() -> Shapes.TIED.within(0))
                .hasMessage("max_tensor_elements must be at least 1 and at most 536870911: 0");
    }

    @Test
    void shouldPutAdaptersUponWholeTensorsOnly() {
        LoraShape lora = new LoraShape(2, 3, List.of("q_proj", "down_proj"));
        DecoderShape shape = Shapes.TIED; // q_proj is 24 x 16, the embedding 11 x 16, down_proj 16 x 20
        assertThatThrownBy(() -> lora.tensors(shape.within(350)))
                .hasMessage("model.layers.0.self_attn.q_proj.weight has 384 numbers and lies in 2 tensors of at most"
                        + " 350, and an adapter applies to one tensor; leave q_proj out of target_modules");
        LoraShape down = new LoraShape(2, 3, List.of("down_proj"));
        assertThat(down.tensors(shape.within(350))).isEqualTo(down.tensors(shape));
    }
}
