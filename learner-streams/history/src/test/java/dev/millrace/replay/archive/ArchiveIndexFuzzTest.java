package dev.millrace.replay.archive;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.replay.archive.ArchiveIndex.PartitionFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Reads an archive with any text as index.json: must give its records or a clear error. {@code @0} is the hash of the
 * first file.
 */
@Timeout(300)
public class ArchiveIndexFuzzTest {
    private static Path folder = Path.of("");
    private static List<PartitionFile> files = List.of();

    /** Called by the fuzzer with generated input. */
    public static void fuzzerTestOneInput(byte[] input) throws IOException {
        if (folder.toString().isEmpty()) {
            folder = Files.createTempDirectory(Path.of("target"), "fuzz");
            files = MadeArchive.write(folder).files();
        }
        String text = new String(input, StandardCharsets.UTF_8);
        for (int file = 0; file < files.size(); file++) { // with marks made at random, so with another hash each time
            text = text.replace("@" + file, files.get(file).sha256());
        }
        MadeArchive.index(folder, text);
        try {
            assertThat(MadeArchive.readAll(folder)).isBetween(0L, MadeArchive.RECORDS);
        } catch (ArchiveException e) {
            assertThat(e).hasMessageContaining(folder.toString());
        }
    }

    static Stream<Path> corpus() throws IOException {
        return Files.list(Path.of("src/test/fuzz", ArchiveIndexFuzzTest.class.getName()))
                .sorted();
    }

    @ParameterizedTest
    @MethodSource("corpus")
    void shouldReadAnArchiveOrRefuseIt(Path input) throws IOException {
        fuzzerTestOneInput(Files.readAllBytes(input));
    }
}
