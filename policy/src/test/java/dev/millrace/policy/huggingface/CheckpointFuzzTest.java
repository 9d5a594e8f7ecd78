package dev.millrace.policy.huggingface;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Arbitrary bytes as model.safetensors: gives finite weights of the requested shape, or an error. */
@Timeout(300)
public class CheckpointFuzzTest {
    private static final DecoderShape SHAPE = new DecoderShape(2, 2, 1, 1, 1, 2, 1, 8, 10_000, 1e-5, true, false);

    /** Called by the fuzzer with what it made up. */
    public static void fuzzerTestOneInput(byte[] input) throws IOException {
        Path directory = FuzzFiles.folder();
        Files.writeString(
                directory.resolve("config.json"), HuggingFaceConfig.write(SHAPE).toString());
        Files.write(directory.resolve("model.safetensors"), input);
        CheckpointDirectory checkpoint = new CheckpointDirectory(directory);
        Weights weights;
        try {
            weights = checkpoint.load();
        } catch (CheckpointException e) {
            assertThat(e).hasMessageStartingWith(directory.toString());
            return;
        }
        checkpoint.check();
        for (TensorSpec spec : SHAPE.tensors()) {
            FloatBuffer tensor = weights.tensor(spec.name());
            while (tensor.hasRemaining()) {
                assertThat(tensor.get()).as(spec.name()).isFinite();
            }
        }
    }

    static Stream<Path> corpus() throws IOException {
        return Files.list(Path.of("src/test/fuzz", CheckpointFuzzTest.class.getName()))
                .sorted();
    }

    @ParameterizedTest
    @MethodSource("corpus")
    void shouldLoadWeightsOrRefuseThem(Path input) throws IOException {
        fuzzerTestOneInput(Files.readAllBytes(input));
    }
}
