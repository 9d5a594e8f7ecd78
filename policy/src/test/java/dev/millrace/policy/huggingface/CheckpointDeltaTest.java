package dev.millrace.policy.huggingface;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.OptionalLong;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CheckpointDeltaTest {
    /** Matrices of more than 40 elements lie in several tensors. */
    private static final DecoderShape CUT = Shapes.TIED.within(40);

    private static final String EMBEDDING = "model.embed_tokens.weight";
    private static final String NORM = "model.norm.weight";

    @TempDir
    private Path directory;

    private static CheckpointExport export(Weights weights, String type) {
        return CheckpointExport.of(weights).as(type);
    }

    /** Name, type and bytes of each tensor, in the file's order. */
    private static Map<String, byte[]> read(Path file) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
        byte[] header = new byte[(int) bytes.getLong()];
        bytes.get(header);
        Map<String, byte[]> tensors = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> entry :
                new ObjectMapper().readTree(header).properties()) {
            if (!entry.getKey().equals("__metadata__")) {
                JsonNode place = entry.getValue().get("data_offsets");
                byte[] tensor = new byte[place.get(1).asInt() - place.get(0).asInt()];
                bytes.get(8 + header.length + place.get(0).asInt(), tensor);
                tensors.put(entry.getKey() + " " + entry.getValue().get("dtype").asText(), tensor);
            }
        }
        return tensors;
    }

    private static ByteBuffer wrapped(byte[] bytes) {
        return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    @Test
    void shouldNameThePlacesOfWholeTensorsAndTheirBitsNow() throws IOException {
        Weights before = Weights.zeros(CUT, Dtype.BF16);
        Weights now = before.copy();
        // 11 rows of 16, cut into pieces of whole rows: element 1 of row 0, element 3 of row 10
        now.tensor(now.shape().tensors().get(0).name()).put(1, -0f);
        int last = now.shape().wholes().get(0).pieces().size() - 1;
        TensorSpec piece = now.shape().wholes().get(0).pieces().get(last);
        assertThat(last).isPositive();
        now.tensor(piece.name()).put(piece.elementCount() - 13, 1f);
        for (int i = 0; i < 16; i++) {
            now.tensor(NORM).put(i, 2f);
        }
        Path to = directory.resolve("delta");

        assertThat(export(now, "BF16").deltaTo(to, export(before, "BF16"))).isEqualTo(OptionalLong.of(18));

        Map<String, byte[]> delta = read(to.resolve("delta.safetensors"));
        assertThat(delta.keySet())
                .containsExactly(EMBEDDING + ".indices I32", EMBEDDING + ".values BF16", NORM + " BF16");
        ByteBuffer places = wrapped(delta.get(EMBEDDING + ".indices I32"));
        assertThat(new int[] {places.getInt(), places.getInt()}).containsExactly(1, 10 * 16 + 3);
        assertThat(delta.get(EMBEDDING + ".values BF16")).containsExactly(0x00, 0x80, 0x80, 0x3f);
        assertThat(delta.get(NORM + " BF16")).hasSize(32).startsWith(0x00, 0x40, 0x00, 0x40);
        assertThat(to).isDirectoryNotContaining("glob:**README.md");
    }

    @ParameterizedTest
    @ValueSource(strings = {"F32", "BF16", "F16"})
    void shouldGiveTheNextVersionBitForBitWhereverItChanged(String type) throws IOException {
        SplittableRandom random = new SplittableRandom(type.hashCode());
        for (int round = 0; round < 20; round++) {
            DecoderShape shape = round % 2 == 0 ? CUT : Shapes.GROUPED_UNTIED_BIASED;
            Weights before = Weights.random(shape, round);
            Weights now = before.copy();
            double share = random.nextDouble() * random.nextDouble() * 0.5;
            for (TensorSpec spec : shape.tensors()) {
                for (int i = 0; i < spec.elementCount(); i++) {
                    if (random.nextDouble() < share) {
                        float value = now.tensor(spec.name()).get(i);
                        now.tensor(spec.name()).put(i, value * (float) (1 + (random.nextDouble() - 0.5) * 1e-2));
                    }
                }
            }
            Path delta = directory.resolve(type + round);
            OptionalLong changed = export(now, type).deltaTo(delta, export(before, type));
            export(before, type).to(directory.resolve("before-" + type + round), "card");
            export(now, type).to(directory.resolve("now-" + type + round), "card");
            Map<String, byte[]> old = read(directory.resolve("before-" + type + round + "/model.safetensors"));
            Map<String, byte[]> due = read(directory.resolve("now-" + type + round + "/model.safetensors"));

            assertThat(changed).isPresent();
            long differing = 0;
            Map<String, byte[]> found = new LinkedHashMap<>(old);
            Map<String, byte[]> read = read(delta.resolve("delta.safetensors"));
            int width = type.equals("F32") ? 4 : 2;
            for (String name : old.keySet()) {
                for (int i = 0; i < old.get(name).length; i += width) {
                    differing += Arrays.equals(old.get(name), i, i + width, due.get(name), i, i + width) ? 0 : 1;
                }
                byte[] places = read.get(name.replace(" " + type, ".indices I32"));
                if (read.containsKey(name)) {
                    found.put(name, read.get(name));
                } else if (places != null) {
                    byte[] values = read.get(name.replace(" " + type, ".values " + type));
                    byte[] tensor = old.get(name).clone();
                    for (int i = 0; i < places.length / 4; i++) {
                        System.arraycopy(
                                values, i * width, tensor, wrapped(places).getInt(4 * i) * width, width);
                    }
                    found.put(name, tensor);
                }
            }
            assertThat(changed).hasValue(differing);
            assertThat(found.keySet()).isEqualTo(due.keySet());
            due.forEach((name, tensor) -> assertThat(found.get(name)).as(name).isEqualTo(tensor));
        }
    }

    @Test
    void shouldSayThatAWholeVersionIsNoLarger() throws IOException {
        Weights before = Weights.random(Shapes.TIED, 1);
        Weights other = Weights.random(Shapes.TIED, 2);
        for (TensorSpec spec : Shapes.TIED.tensors()) { // norms are 1 in both
            for (int i = 0; i < spec.elementCount(); i++) {
                other.tensor(spec.name()).put(i, 3 + other.tensor(spec.name()).get(i));
            }
        }
        Path to = directory.resolve("delta");
        assertThat(export(other, "BF16").deltaTo(to, export(before, "BF16"))).isEmpty();
        assertThat(to).doesNotExist();
        assertThat(export(before.copy(), "BF16").deltaTo(to, export(before, "BF16")))
                .isEqualTo(OptionalLong.of(0));
        assertThat(read(to.resolve("delta.safetensors"))).isEmpty();
        assertThatThrownBy(() -> export(before.copy(), "BF16").deltaTo(to, export(before, "BF16")))
                .isInstanceOf(CheckpointException.class)
                .hasMessage(to + " exists and is not overwritten; name a new directory");
    }

    @Test
    void shouldHashTheBytesThatTheFileHas() throws Exception {
        CheckpointExport export = export(Weights.random(CUT, 3), "BF16");
        export.to(directory.resolve("model"), "card");
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        read(directory.resolve("model/model.safetensors")).values().forEach(digest::update);
        assertThat(export.sha256()).isEqualTo(HexFormat.of().formatHex(digest.digest()));
    }
}
