package dev.millrace.cli.correct;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.runtime.RefusedRequestException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Any bytes as a file for correct, under a preset and under an algorithm: numbers, or a sentence for each bad line. */
@Timeout(300)
public class CorrectLinesFuzzTest {
    private static Path file = Path.of("");

    /** Called by the fuzzer with what it made up. */
    public static void fuzzerTestOneInput(byte[] input) throws IOException {
        if (file.toString().isEmpty()) {
            file = Files.createTempFile("fuzz", ".jsonl");
            file.toFile().deleteOnExit();
        }
        Files.write(file, input);
        try {
            SequenceFile sequences = SequenceFile.read(file, RatioKind.ANCHOR, CorrectLinesFuzzTest::isSentence);
            if (!sequences.lines().isEmpty()) {
                TokenBatch batch = sequences.batch();
                assertThat(batch.sequenceCount()).isEqualTo(sequences.lines().size());
                sequences.ratio(batch, RatioKind.ANCHOR);
            }
            AlgorithmCorrection.of("decoupled_geo_rs(0.99_1.01)", Map.of())
                    .correct(file, OptionalLong.empty(), CorrectLinesFuzzTest::isSentence);
        } catch (RefusedRequestException e) {
            assertThat(e.getMessage()).isNotBlank();
        }
    }

    private static void isSentence(int line, String problem) {
        assertThat(line).isPositive();
        assertThat(problem).isNotBlank();
    }

    static Stream<Path> corpus() throws IOException {
        return Files.list(Path.of("src/test/fuzz", CorrectLinesFuzzTest.class.getName()))
                .sorted();
    }

    @ParameterizedTest
    @MethodSource("corpus")
    void shouldReadLinesOrRefuseThem(Path input) throws IOException {
        fuzzerTestOneInput(Files.readAllBytes(input));
    }
}
