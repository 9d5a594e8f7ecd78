package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Simulates a power loss on a stopped broker: removes the tail of a partition. */
final class CutLog {
    private static final int LENGTH_AT = 8;
    private static final int HEADER = 12;

    private CutLog() {}

    /** Removes everything of a partition from an offset on. */
    static void from(Path brokerDirectory, String partition, long offset) {
        Path home = brokerDirectory.resolve(partition);
        try {
            for (Path other : files(home)) {
                if (!other.toString().endsWith(".log") && !other.endsWith("partition.metadata")) {
                    Files.delete(other);
                }
            }
            try (RandomAccessFile log = new RandomAccessFile(
                    home.resolve("00000000000000000000.log").toFile(), "rw")) {
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
            afterCrash(brokerDirectory);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    /** Removes everything of a partition. */
    static void everything(Path brokerDirectory, String partition) {
        try {
            for (Path file : files(brokerDirectory.resolve(partition))) {
                if (!file.endsWith("partition.metadata")) {
                    Files.delete(file);
                }
            }
            afterCrash(brokerDirectory);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static void afterCrash(Path brokerDirectory) throws IOException {
        Files.deleteIfExists(brokerDirectory.resolve(".kafka_cleanshutdown"));
        Files.deleteIfExists(brokerDirectory.resolve("recovery-point-offset-checkpoint"));
    }

    private static long offsetAt(RandomAccessFile log, long at) throws IOException {
        log.seek(at);
        return log.readLong();
    }

    private static List<Path> files(Path directory) throws IOException {
        List<Path> files = new ArrayList<>();
        try (DirectoryStream<Path> all = Files.newDirectoryStream(directory)) {
            all.forEach(files::add);
        }
        return files;
    }
}
