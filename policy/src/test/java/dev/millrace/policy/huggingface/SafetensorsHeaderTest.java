package dev.millrace.policy.huggingface;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.policy.huggingface.SafetensorsFile.SafetensorsHeader;
import dev.millrace.policy.huggingface.SafetensorsFile.SafetensorsHeader.Entry;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SafetensorsHeaderTest {
    private static final String TWO_TO_THE_70 = "1180591620717411303424";

    @TempDir
    private Path folder;

    private static Map<String, Entry> read(String json, long dataBytes) {
        return SafetensorsHeader.read("f", json.getBytes(StandardCharsets.UTF_8), dataBytes);
    }

    private static String tensor(String name, String type, String shape, String offsets) {
        return "\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":%s}".formatted(name, type, shape, offsets);
    }

    private static void refused(String json, long dataBytes, String sentence) {
        assertThatThrownBy(() -> read(json, dataBytes))
                .isInstanceOf(CheckpointException.class)
                .hasMessageContaining(sentence);
    }

    private static void refusedOffsets(String offsets, String sentence) {
        refused("{" + tensor("a", "F32", "[2]", offsets) + "}", 8, sentence);
    }

    @Test
    void shouldReadTensorsThatCoverTheFileInWhateverOrderTheyAreNamed() {
        String json = "{\"__metadata__\":{\"format\":\"pt\"}," + tensor("b", "BF16", "[2,3]", "[8,20]") + ","
                + tensor("a", "F32", "[2]", "[0,8]") + "," + tensor("none", "F32", "[0]", "[8,8]") + "}   ";
        assertThat(read(json, 20))
                .isEqualTo(Map.of(
                        "a", new Entry("F32", List.of(2L), 0, 8),
                        "b", new Entry("BF16", List.of(2L, 3L), 8, 20),
                        "none", new Entry("F32", List.of(0L), 8, 8)));
    }

    @Test
    void shouldRefusePlacesThatTouchLeaveGapsOrLeaveTheFile() {
        String a = tensor("a", "F32", "[2]", "[0,8]");
        refused(
                "{" + a + "," + tensor("b", "F32", "[2]", "[4,12]") + "}",
                12,
                "b begins at byte 4, inside of a, which ends at 8");
        refused("{" + a + "," + tensor("b", "F32", "[2]", "[0,8]") + "}", 8, "b begins at byte 0, inside of a");
        refused(
                "{" + a + "," + tensor("b", "F32", "[2]", "[12,20]") + "}",
                20,
                "with bytes that belong to nothing behind a");
        refused("{" + a + "}", 12, "its tensors take 8 bytes behind the header, and there are 12");
        refused("{" + a + "}", 4, "its tensors take 8 bytes behind the header, and there are 4");
    }

    @Test
    void shouldRefuseOffsetsThatAreNoWholeNumbersOfBytes() {
        refusedOffsets("[0.0,8]", "a must have whole numbers from 0 to 9223372036854775807 in data_offsets: 0.0");
        refusedOffsets("[0,8.9]", "in data_offsets: 8.9");
        refusedOffsets("[-8,0]", "in data_offsets: -8");
        refusedOffsets("[0," + TWO_TO_THE_70 + "]", "in data_offsets: " + TWO_TO_THE_70);
        refusedOffsets("[" + TWO_TO_THE_70 + ",8]", "in data_offsets: " + TWO_TO_THE_70);
        refusedOffsets("[\"0\",8]", "in data_offsets: \"0\"");
        refusedOffsets("[8,0]", "a lies at bytes 8 to 0, and needs 8");
        refusedOffsets("[0]", "must have a begin and an end");
        refusedOffsets("[0,8,16]", "must have a begin and an end");
        refusedOffsets("null", "must have a begin and an end");
    }

    @Test
    void shouldRefuseTypesAndShapesThatDoNotGoWithTheBytes() {
        refused(
                "{" + tensor("a", "F16", "[2]", "[0,8]") + "}",
                8,
                "a lies at bytes 0 to 8, and needs 4 for F16 of the shape [2]");
        refused("{" + tensor("a", "F31", "[2]", "[0,8]") + "}", 8, "has the type \"F31\"");
        refused("{" + tensor("a", "F32", "[2.0]", "[0,8]") + "}", 8, "in shape: 2.0");
        refused("{" + tensor("a", "F32", "[-2]", "[0,8]") + "}", 8, "in shape: -2");
        refused(
                "{" + tensor("a", "F32", "[4294967296,4294967296,4]", "[0,8]") + "}",
                8,
                "would be larger than any file");
        refused("{" + tensor("a", "F32", "2", "[0,8]") + "}", 8, "must have a list of at most 16 lengths");
        refused(
                "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}",
                8,
                "a field that safetensors files do not have: x");
    }

    @Test
    void shouldRefuseHeadersThatAreNone() {
        refused(
                "{" + tensor("a", "F32", "[2]", "[0,8]") + "," + tensor("a", "F32", "[2]", "[0,8]") + "}",
                8,
                "Duplicate field 'a'");
        refused("[]", 0, "its header is no JSON object");
        refused("{} {}", 0, "its header continues after its JSON object");
        refused("{\"a\":", 0, "its header is not JSON");
        refused("{\"a\":null}", 0, "a has no type, shape and place");
        refused("{\"a\":" + "[".repeat(100_000), 0, "its header is not JSON");
        refused("{\"__metadata__\":{\"a\":1}}", 0, "__metadata__ must hold texts only");
    }

    @Test
    void shouldRefuseHeadersOfImpossibleLengths() throws Exception {
        for (long length : new long[] {0, 1, -1, Long.MIN_VALUE, 100_000_001, 1L << 40}) {
            assertThatThrownBy(() -> SafetensorsFile.open(file(length)))
                    .hasMessageContaining("its header would be " + length + " bytes long");
        }
        assertThatThrownBy(() -> SafetensorsFile.open(file(99_999_999)))
                .hasMessageEndingWith("it ends after 10 bytes, within what its header says is there");
        assertThatThrownBy(() -> SafetensorsFile.open(Path.of("/dev/zero")))
                .hasMessageContaining("is not a regular file");
    }

    private Path file(long length) throws Exception {
        return Files.write(
                folder.resolve("m.safetensors"),
                ByteBuffer.allocate(10)
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .putLong(length)
                        .put((byte) '{')
                        .put((byte) '}')
                        .array());
    }
}
