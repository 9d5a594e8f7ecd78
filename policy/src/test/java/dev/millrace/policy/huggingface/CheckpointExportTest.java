package dev.millrace.policy.huggingface;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Bfloat16;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

class CheckpointExportTest {
    static final List<FamiliesTest.Model> MODELS = FamiliesTest.MODELS;

    @TempDir
    Path directory;

    @ParameterizedTest
    @FieldSource("MODELS")
    void shouldWriteACheckpointAsItCame(FamiliesTest.Model model) throws IOException {
        Path begun = directory.resolve("begun");
        FamilyCheckpoint.random(model.config(), model.dtype(), model.shards(), 7)
                .write(begun);
        Files.writeString(begun.resolve("tokenizer.json"), "{}");
        Files.writeString(begun.resolve("chat_template.jinja"), "{{ messages }}");
        Files.writeString(begun.resolve("pytorch_model.bin"), "old");
        CheckpointDirectory from = new CheckpointDirectory(begun);
        Weights weights = from.load();
        Path to = directory.resolve("new/place");

        CheckpointExport.like(from, weights).to(to, "card\n");

        CheckpointDirectory written = new CheckpointDirectory(to);
        assertThat(written.config()).isEqualTo(from.config());
        assertThat(written.layout()).isEqualTo(from.layout());
        for (TensorSpec spec : weights.shape().tensors()) {
            assertThat(written.load().bytes(spec.name())).isEqualTo(weights.bytes(spec.name()));
        }
        assertThat(to.resolve("README.md")).hasContent("card\n");
        assertThat(to.resolve("tokenizer.json")).hasContent("{}");
        assertThat(to.resolve("chat_template.jinja")).hasContent("{{ messages }}");
        assertThat(to.resolve("pytorch_model.bin")).doesNotExist();
        assertThat(to.getParent()).isDirectoryNotContaining("glob:**.partial-*");
    }

    @Test
    void shouldWriteOneFileOfFloat32WithAConfigOfItsOwnWhereNothingCame() throws IOException {
        Weights weights = Weights.random(Shapes.GROUPED_UNTIED_BIASED, 3);
        Path to = directory.resolve("model");
        CheckpointExport export = CheckpointExport.of(weights);
        assertThat(export.types()).containsExactly("F32");
        assertThat(export.bytes()).isEqualTo(4 * weights.shape().parameterCount());

        export.to(to, "card");

        Weights loaded = new CheckpointDirectory(to).load();
        assertThat(loaded.shape()).isEqualTo(weights.shape());
        for (TensorSpec spec : weights.shape().tensors()) {
            assertThat(loaded.bytes(spec.name())).isEqualTo(weights.bytes(spec.name()));
        }
    }

    @Test
    void shouldLeaveOutAValueHeadAndBeginOneAtZero() throws IOException {
        Weights weights = Weights.random(Shapes.VALUE_HEAD, 3);
        weights.tensor("value_head.weight").put(1, 0.5f);
        Path to = directory.resolve("model");
        CheckpointExport.of(weights).to(to, "card");

        assertThat(new CheckpointDirectory(to).shape()).isEqualTo(Shapes.TIED);
        assertThat(new CheckpointDirectory(to).layout()).doesNotContainKey("value_head.weight");
        CheckpointDirectory again = new CheckpointDirectory(to, TensorSpec.MOST_ELEMENTS, true);
        Weights begun = again.load();
        assertThat(begun.shape()).isEqualTo(Shapes.VALUE_HEAD);
        assertThat(begun.tensor("value_head.weight").get(1)).isZero();
        Map<String, ByteBuffer> read = new LinkedHashMap<>();
        again.read((spec, bytes) -> read.put(
                spec.name(), ByteBuffer.allocate(bytes.remaining()).put(bytes).flip()));
        assertThat(read.keySet())
                .containsExactlyElementsOf(
                        begun.shape().tensors().stream().map(TensorSpec::name).toList());
        read.forEach((name, bytes) -> assertThat(bytes).as(name).isEqualTo(begun.bytes(name)));
        CheckpointExport.like(new CheckpointDirectory(to), weights).to(directory.resolve("like"), "card");
        assertThat(new CheckpointDirectory(directory.resolve("like")).layout())
                .isEqualTo(new CheckpointDirectory(to).layout());
    }

    @Test
    void shouldRoundToTheNearestOfAnotherTypeAndSayIt() throws IOException {
        Weights weights = Weights.random(Shapes.TIED, 3);
        for (String type : new String[] {"BF16", "F16"}) {
            Path to = directory.resolve(type);
            CheckpointExport export = CheckpointExport.of(weights).as(type);
            assertThat(export.types()).isEqualTo(Set.of(type));
            export.to(to, "card");
            CheckpointDirectory written = new CheckpointDirectory(to);
            assertThat(written.config().get("torch_dtype").asText())
                    .isEqualTo(type.equals("F16") ? "float16" : "bfloat16");
            Weights loaded = written.load();
            for (TensorSpec spec : weights.shape().tensors()) {
                for (int i = 0; i < spec.elementCount(); i++) {
                    float before = weights.tensor(spec.name()).get(i);
                    float after = loaded.tensor(spec.name()).get(i);
                    double half =
                            Math.scalb(1.0, Math.max(Math.getExponent(before), -14) - (type.equals("F16") ? 11 : 8));
                    assertThat(Math.abs((double) after - before)).isLessThanOrEqualTo(half);
                }
            }
        }
        weights.tensor("model.norm.weight").put(2, 70_000f);
        assertThatThrownBy(() -> CheckpointExport.of(weights).as("F16").to(directory.resolve("large"), "card"))
                .isInstanceOf(CheckpointException.class)
                .hasMessage("model.norm.weight has 70000.0, which F16 cannot hold; write the checkpoint as F32");
        assertThat(directory).isDirectoryNotContaining("glob:**large*");
    }

    @Test
    void shouldRoundTiesToEvenAndComeBackFromEveryHalf() {
        for (int bits = 0; bits < 1 << 16; bits++) {
            short half = (short) bits;
            float value = SafetensorsFile.halfToFloat(half);
            if (!Float.isNaN(value)) {
                assertThat(SafetensorsWriter.floatToHalf(value)).isEqualTo(half);
            }
        }
        assertThat(SafetensorsWriter.floatToHalf(1 + 0x1p-11f)).isEqualTo((short) 0x3c00);
        assertThat(SafetensorsWriter.floatToHalf(1 + 3 * 0x1p-11f)).isEqualTo((short) 0x3c02);
        assertThat(SafetensorsWriter.floatToHalf(-0x1p-25f)).isEqualTo((short) 0x8000);
        assertThat(SafetensorsWriter.floatToHalf(65519.996f)).isEqualTo((short) 0x7bff);
        assertThat(SafetensorsWriter.floatToHalf(65520f)).isEqualTo((short) 0x7c00);
        assertThat(Bfloat16.of(1 + 0x1p-8f)).isEqualTo((short) 0x3f80);
        assertThat(Bfloat16.of(1 + 3 * 0x1p-8f)).isEqualTo((short) 0x3f82);
        assertThat(Bfloat16.of(Float.MAX_VALUE)).isEqualTo((short) 0x7f80);
        SplittableRandom random = new SplittableRandom(1);
        for (int i = 0; i < 1000; i++) {
            float value = (float) random.nextDouble(-4, 4);
            float back = SafetensorsFile.halfToFloat(SafetensorsWriter.floatToHalf(value));
            assertThat(Math.abs((double) back - value))
                    .isLessThanOrEqualTo(Math.scalb(1.0, Math.max(Math.getExponent(value), -14) - 11));
        }
    }

    @Test
    void shouldRefuseToOverwrite() throws IOException {
        Path there = Files.createDirectory(directory.resolve("there"));
        assertThatThrownBy(() ->
                        CheckpointExport.of(Weights.random(Shapes.TIED, 1)).to(there, "card"))
                .isInstanceOf(CheckpointException.class)
                .hasMessage(there + " exists and is not overwritten; name a new directory");
        assertThat(there).isEmptyDirectory();
    }
}
