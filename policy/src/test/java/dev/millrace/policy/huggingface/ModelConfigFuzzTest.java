package dev.millrace.policy.huggingface;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Any bytes as config.json: a shape that is written and read back the same, or a sentence. */
@Timeout(300)
public class ModelConfigFuzzTest {
    /** Called by the fuzzer with what it made up. */
    public static void fuzzerTestOneInput(byte[] input) throws IOException {
        Path directory = FuzzFiles.folder();
        Files.write(directory.resolve("config.json"), input);
        DecoderShape shape;
        try {
            shape = new CheckpointDirectory(directory).shape();
        } catch (CheckpointException e) {
            assertThat(e).hasMessageStartingWith(directory.toString());
            return;
        }
        assertThat(HuggingFaceConfig.read("written", HuggingFaceConfig.write(shape), TensorSpec.MOST_ELEMENTS))
                .isEqualTo(shape);
    }

    static Stream<Path> corpus() throws IOException {
        return Files.list(Path.of("src/test/fuzz", ModelConfigFuzzTest.class.getName()))
                .sorted();
    }

    @ParameterizedTest
    @MethodSource("corpus")
    void shouldReadAShapeOrRefuseIt(Path input) throws IOException {
        fuzzerTestOneInput(Files.readAllBytes(input));
    }
}
