package dev.millrace.replay.archive;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.replay.archive.ArchiveIndex.PartitionFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.commons.codec.digest.DigestUtils;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Arbitrary bytes as a partition's file with a matching hash: gives the indexed records, or an error. */
@Timeout(300)
public class ArchiveFileFuzzTest {
    private static Path folder = Path.of("");

    /** Called by the fuzzer with what it made up. */
    public static void fuzzerTestOneInput(byte[] input) throws IOException {
        if (folder.toString().isEmpty()) {
            folder = Files.createTempDirectory(Path.of("target"), "fuzz");
        }
        ArchiveIndex made = MadeArchive.write(folder);
        PartitionFile first = made.files().get(0);
        Files.write(folder.resolve(first.file()), input);
        new ArchiveIndex(
                        made.format(),
                        made.runId(),
                        made.epoch(),
                        made.policyId(),
                        made.lineage(),
                        made.topicPrefix(),
                        made.isWhole(),
                        made.held(),
                        made.origin(),
                        made.configuration(),
                        made.schemas(),
                        List.of(
                                new PartitionFile(
                                        first.file(),
                                        first.topic(),
                                        first.partition(),
                                        first.from(),
                                        first.end(),
                                        first.records(),
                                        DigestUtils.sha256Hex(input),
                                        first.blocks()),
                                made.files().get(1),
                                made.files().get(2)))
                .write(folder);
        try {
            assertThat(MadeArchive.readAll(folder)).isEqualTo(MadeArchive.RECORDS);
        } catch (ArchiveException e) {
            assertThat(e).hasMessageContaining(folder.toString());
        }
    }

    static Stream<Path> corpus() throws IOException {
        return Files.list(Path.of("src/test/fuzz", ArchiveFileFuzzTest.class.getName()))
                .sorted();
    }

    @ParameterizedTest
    @MethodSource("corpus")
    void shouldReadRecordsOrRefuseThem(Path input) throws IOException {
        fuzzerTestOneInput(Files.readAllBytes(input));
    }
}
