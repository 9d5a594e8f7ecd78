package dev.millrace.chaos.loss;

import dev.millrace.chaos.ChaosException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;

/**
 * Takes the end of a topic's partition from a broker that is not running, as a power loss does: whole batches of records at the end of
 * its newest segment, acknowledged or not, and the markers of transactions among them.
 */
public final class TailCut {
    private static final int HEADER = 12;
    private static final int LAST_OFFSET_DELTA_AT = 23;
    private static final int MOST_BATCHES = 12;

    private TailCut() {}

    /** A batch of records: where in the file it begins, and its offsets. */
    private record Segment(Path partition, Path file, List<Batch> batches) {
        int number() {
            String name = partition.getFileName().toString();
            return Integer.parseInt(name.substring(name.lastIndexOf('-') + 1));
        }
    }

    private record Batch(long at, long first, long last) {}

    /**
     * Cuts one of a topic's partitions, drawn among those with records.
     *
     * @param broker its folder
     * @param topic with the run's prefix
     * @return empty if the topic has no records
     */
    public static Optional<Lost> of(Path broker, String topic, SplittableRandom random) {
        try {
            List<Segment> segments = new ArrayList<>();
            try (DirectoryStream<Path> partitions = Files.newDirectoryStream(broker, topic + "-*")) {
                for (Path partition : partitions) {
                    if (partition.getFileName().toString().matches("\\Q" + topic + "\\E-\\d+")) {
                        newest(partition).ifPresent(segments::add);
                    }
                }
            }
            if (segments.isEmpty()) {
                return Optional.empty();
            }
            segments.sort(Comparator.comparing(Segment::number));
            Segment segment = segments.get(random.nextInt(segments.size()));
            List<Batch> batches = segment.batches();
            Batch first = batches.get(batches.size() - 1 - random.nextInt(Math.min(MOST_BATCHES, batches.size())));
            cut(broker, segment, first.at());
            return Optional.of(new Lost(
                    topic,
                    segment.number(),
                    first.first(),
                    batches.get(batches.size() - 1).last() + 1));
        } catch (IOException e) {
            throw new ChaosException(
                    "the end of " + topic + " could not be cut in " + broker + ": " + e.getMessage(), e);
        }
    }

    private static Optional<Segment> newest(Path partition) throws IOException {
        Optional<Segment> newest = Optional.empty();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(partition, "*.log")) {
            for (Path file : files) {
                Segment segment = new Segment(partition, file, batches(file));
                if (!segment.batches().isEmpty()
                        && newest.map(one -> one.file().compareTo(file) < 0).orElse(true)) {
                    newest = Optional.of(segment);
                }
            }
        }
        return newest;
    }

    private static List<Batch> batches(Path segment) throws IOException {
        List<Batch> batches = new ArrayList<>();
        try (RandomAccessFile log = new RandomAccessFile(segment.toFile(), "r")) {
            long at = 0;
            while (at + LAST_OFFSET_DELTA_AT + Integer.BYTES <= log.length()) {
                log.seek(at);
                long first = log.readLong();
                int length = log.readInt();
                log.seek(at + LAST_OFFSET_DELTA_AT);
                int delta = log.readInt();
                if (length <= 0 || at + HEADER + length > log.length()) {
                    break; // the broker was killed while it wrote it
                }
                batches.add(new Batch(at, first, first + delta));
                at += HEADER + length;
            }
        }
        return batches;
    }

    private static void cut(Path broker, Segment segment, long length) throws IOException {
        Path partition = segment.partition();
        try (DirectoryStream<Path> files =
                Files.newDirectoryStream(partition, "*.{index,timeindex,snapshot,txnindex}")) {
            for (Path derived : files) { // rebuilt from the rest
                Files.delete(derived);
            }
        }
        Files.deleteIfExists(partition.resolve("leader-epoch-checkpoint"));
        try (RandomAccessFile log = new RandomAccessFile(segment.file().toFile(), "rw")) {
            log.setLength(length);
        }
        Files.deleteIfExists(broker.resolve(".kafka_cleanshutdown"));
        Files.deleteIfExists(broker.resolve("recovery-point-offset-checkpoint"));
    }
}
