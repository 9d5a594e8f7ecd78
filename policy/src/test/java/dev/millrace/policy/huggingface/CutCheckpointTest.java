package dev.millrace.policy.huggingface;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.decoder.WholeTensor;
import dev.millrace.policy.weights.Weights;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** Files hold every tensor as a whole, even if several tensors hold it in memory. */
class CutCheckpointTest {
    static final List<DecoderShape> SHAPES =
            List.of(Shapes.TIED, Shapes.GROUPED_UNTIED_BIASED, Shapes.ONE_KEY_HEAD, Shapes.EXPERTS);
    private static final int MOST = 64;

    @TempDir
    Path directory;

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldReadRangesOfRowsAndWriteThemAsTheSameFile(DecoderShape shape) throws IOException {
        for (String type : List.of("F32", "BF16", "F16")) {
            Path begun = directory.resolve(type);
            CheckpointExport.of(Weights.random(shape, 1)).as(type).to(begun, "card");
            Weights whole = new CheckpointDirectory(begun).load();

            CheckpointDirectory read = new CheckpointDirectory(begun, MOST, false);
            Weights cut = read.load();

            assertThat(cut.shape()).isEqualTo(shape.within(MOST)).isNotEqualTo(shape);
            for (WholeTensor tensor : cut.shape().wholes()) {
                assertThat(bytes(cut, tensor.pieces())).isEqualTo(bytes(whole, List.of(whole(tensor))));
            }
            ByteArrayOutputStream streamed = new ByteArrayOutputStream();
            read.read((spec, bytes) -> put(streamed, bytes));
            assertThat(streamed.toByteArray()).isEqualTo(bytes(cut, cut.shape().tensors()));

            Path like = directory.resolve(type + "-like");
            CheckpointExport.like(new CheckpointDirectory(begun), cut).to(like, "card");
            assertThat(like.resolve("model.safetensors")).hasSameBinaryContentAs(begun.resolve("model.safetensors"));
            Path own = directory.resolve(type + "-own");
            CheckpointExport export = CheckpointExport.of(cut).as(type);
            assertThat(export.bytes()).isEqualTo(shape.parameterCount() * (type.equals("F32") ? 4 : 2));
            export.to(own, "card");
            assertThat(own.resolve("model.safetensors")).hasSameBinaryContentAs(begun.resolve("model.safetensors"));
            CheckpointExport.of(cut)
                    .as(type)
                    .beside(new CheckpointDirectory(begun))
                    .to(directory.resolve("b" + type), "card");
            assertThat(new CheckpointDirectory(directory.resolve("b" + type)).config())
                    .isEqualTo(new CheckpointDirectory(begun).config());
        }
    }

    @Test
    void shouldSaveWholeTensors() throws IOException {
        Weights cut = Weights.random(Shapes.TIED.within(MOST), 1);
        new CheckpointDirectory(directory.resolve("cut")).save(cut);
        new CheckpointDirectory(directory.resolve("whole")).save(Weights.random(Shapes.TIED, 1));
        assertThat(directory.resolve("cut/model.safetensors"))
                .hasSameBinaryContentAs(directory.resolve("whole/model.safetensors"));
    }

    @Test
    void shouldCompareATiedHeadThatIsStoredOnceMorePieceByPiece() throws IOException {
        Weights weights = Weights.random(Shapes.TIED, 1);
        Path path = directory.resolve("model.safetensors");
        new CheckpointDirectory(directory).save(weights);
        List<SafetensorsWriter.Tensor> tensors = new ArrayList<>(Shapes.TIED.wholes().stream()
                .map(whole -> SafetensorsWriter.Tensor.of(whole, whole.name(), "F32", weights.tensors()))
                .toList());
        WholeTensor embedding = Shapes.TIED.embedding();
        Weights other = weights.copy();
        tensors.add(SafetensorsWriter.Tensor.of(embedding, "lm_head.weight", "F32", other.tensors()));
        SafetensorsWriter.write(path, tensors);
        CheckpointDirectory read = new CheckpointDirectory(directory, MOST, false);
        assertThat(bytes(read.load(), read.shape().embedding().pieces())).isEqualTo(bytes(weights, embedding.pieces()));

        int last = (int) embedding.elementCount() - 1;
        other.tensor(embedding.name()).put(last, 7);
        SafetensorsWriter.write(path, tensors);
        assertThatThrownBy(read::load)
                .hasMessageEndingWith(
                        "tie_word_embeddings is true, but lm_head.weight differs from model.embed_tokens.weight");
        assertThatThrownBy(read::check).hasMessageContaining("lm_head.weight differs");
    }

    @Test
    void shouldNameTheNumberOfTheWholeThatIsNotFinite() throws IOException {
        Weights weights = Weights.random(Shapes.TIED, 1);
        weights.tensor("model.embed_tokens.weight").put(150, Float.NaN);
        new CheckpointDirectory(directory).save(weights);
        assertThatThrownBy(() -> new CheckpointDirectory(directory, MOST, false).load())
                .hasMessageContaining("model.embed_tokens.weight has NaN as element 150 of 176");
    }

    @Test
    void shouldRefuseALimitBelowARow() throws IOException {
        new CheckpointDirectory(directory).save(Weights.random(Shapes.TIED, 1));
        assertThatThrownBy(() -> new CheckpointDirectory(directory, 15, false).shape())
                .isInstanceOf(CheckpointException.class)
                .hasMessageContaining("model.embed_tokens.weight has rows of 16 numbers, and a tensor may have 15");
    }

    private static TensorSpec whole(WholeTensor tensor) {
        return new TensorSpec(tensor.name(), tensor.dims());
    }

    private static byte[] bytes(Weights weights, List<TensorSpec> specs) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        specs.forEach(spec -> put(all, weights.bytes(spec.name())));
        return all.toByteArray();
    }

    private static void put(ByteArrayOutputStream into, ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        into.writeBytes(copy);
    }
}
