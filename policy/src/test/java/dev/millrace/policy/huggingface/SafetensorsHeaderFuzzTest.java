package dev.millrace.policy.huggingface;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.policy.huggingface.SafetensorsFile.SafetensorsHeader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Any bytes as the header of a file with {@value #DATA_BYTES} bytes of tensors: tensors that cover them exactly, or a sentence. */
@Timeout(300)
public class SafetensorsHeaderFuzzTest {
    private static final long DATA_BYTES = 64;

    /** Called by the fuzzer with what it made up. */
    public static void fuzzerTestOneInput(byte[] input) {
        Map<String, SafetensorsHeader.Entry> entries;
        try {
            entries = SafetensorsHeader.read("file", input, DATA_BYTES);
        } catch (CheckpointException e) {
            assertThat(e).hasMessageStartingWith("file");
            return;
        }
        byte[] owners = new byte[(int) DATA_BYTES];
        entries.forEach((name, entry) -> {
            for (long at = entry.begin(); at < entry.end(); at++) {
                owners[(int) at]++;
            }
        });
        assertThat(owners).containsOnly(1);
    }

    static Stream<Path> corpus() throws IOException {
        return Files.list(Path.of("src/test/fuzz", SafetensorsHeaderFuzzTest.class.getName()))
                .sorted();
    }

    @ParameterizedTest
    @MethodSource("corpus")
    void shouldCoverTheFileOrBeRefused(Path input) throws IOException {
        fuzzerTestOneInput(Files.readAllBytes(input));
    }
}
