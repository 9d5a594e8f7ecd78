package dev.millrace.runtime.folder;

import dev.millrace.replay.archive.ArchiveException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;

/** A log segment of a partition, named by its first offset. */
record Segment(long base, Path file) {
    private static final String SUFFIX = ".log";

    /** Those of a partition's folder, in order. */
    static List<Segment> in(Path folder) {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(file -> file.getFileName().toString().endsWith(SUFFIX))
                    .map(Segment::of)
                    .sorted(Comparator.comparingLong(Segment::base))
                    .toList();
        } catch (IOException e) {
            throw gone(folder, e);
        }
    }

    private static Segment of(Path file) {
        String name = file.getFileName().toString();
        return new Segment(Long.parseLong(name.substring(0, name.length() - SUFFIX.length())), file);
    }

    /** An open segment; its batches are read lazily up to the last whole one. */
    Batches open(int position) {
        try {
            FileRecords records = FileRecords.open(file.toFile(), false);
            return new Batches(file, records, records.batchesFrom(position).iterator());
        } catch (IOException e) {
            throw gone(file, e);
        }
    }

    private static ArchiveException gone(Path file, IOException e) {
        return new ArchiveException(
                file + " cannot be read (" + e.getMessage() + "); if the run is live or was removed, retry", e);
    }

    static final class Batches implements Iterator<FileChannelRecordBatch>, AutoCloseable {
        private final Path file;
        private final FileRecords records;
        private final Iterator<FileChannelRecordBatch> batches;
        private Optional<FileChannelRecordBatch> next = Optional.empty();

        private Batches(Path file, FileRecords records, Iterator<FileChannelRecordBatch> batches) {
            this.file = file;
            this.records = records;
            this.batches = batches;
        }

        @Override
        public boolean hasNext() {
            if (next.isEmpty()) {
                try {
                    next = batches.hasNext() ? Optional.of(batches.next()) : Optional.empty();
                } catch (KafkaException e) {
                    // the broker truncates a partly written batch at its next start
                }
            }
            return next.isPresent();
        }

        @Override
        public FileChannelRecordBatch next() {
            if (!hasNext()) {
                throw new NoSuchElementException("the end of " + file);
            }
            FileChannelRecordBatch batch = next.orElseThrow();
            next = Optional.empty();
            return batch;
        }

        @Override
        public void close() {
            try {
                records.close();
            } catch (IOException e) {
                throw gone(file, e);
            }
        }
    }
}
