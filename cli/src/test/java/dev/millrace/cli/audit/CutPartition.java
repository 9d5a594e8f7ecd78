package dev.millrace.cli.audit;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** What a power loss does to a partition of a broker that is not running: its tail is gone. */
final class CutPartition {
    private static final int LENGTH_AT = 8;
    private static final int HEADER = 12;

    private CutPartition() {}

    /** Removes everything from an offset on, which begins a batch of records. */
    static void from(Path broker, String partition, long offset) throws IOException {
        Path home = broker.resolve(partition);
        try (DirectoryStream<Path> files = Files.newDirectoryStream(home, "*.{index,timeindex,snapshot,txnindex}")) {
            for (Path derived : files) { // rebuilt from the rest
                Files.delete(derived);
            }
        }
        Files.deleteIfExists(home.resolve("leader-epoch-checkpoint"));
        try (RandomAccessFile log =
                new RandomAccessFile(home.resolve("00000000000000000000.log").toFile(), "rw")) {
            long at = 0;
            while (at + HEADER <= log.length() && offsetAt(log, at) < offset) {
                log.seek(at + LENGTH_AT);
                at += HEADER + log.readInt();
            }
            assertThat(at)
                    .as("something lies behind offset %s of %s", offset, home)
                    .isLessThan(log.length());
            log.setLength(at);
        }
        Files.deleteIfExists(broker.resolve(".kafka_cleanshutdown"));
        Files.deleteIfExists(broker.resolve("recovery-point-offset-checkpoint"));
    }

    private static long offsetAt(RandomAccessFile log, long at) throws IOException {
        log.seek(at);
        return log.readLong();
    }
}
