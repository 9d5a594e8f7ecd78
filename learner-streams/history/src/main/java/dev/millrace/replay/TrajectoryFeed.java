package dev.millrace.replay;

import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;

/**
 * The trajectories that batches name, as records, for batches that are asked about in their order.
 *
 * <p>Batches take trajectories nearly in the order in which these lie. So each partition is read once, from one end to the
 * other, and what is read before its batch comes is kept, up to {@value #KEPT_BYTES} bytes in all; only what was given up
 * meanwhile, or lies far ahead, is fetched by its place, which costs a question to the broker each time. Confined to one
 * thread.
 */
final class TrajectoryFeed implements AutoCloseable {
    private static final long KEPT_BYTES = 64 << 20;
    private static final long OBJECT_BYTES = 200;
    /** Records that are read over rather than asked for by their place. */
    private static final long READ_OVER = 20_000;

    private record Place(int partition, long offset) {}

    /** How far a partition has been read. */
    private static final class Reading {
        private final RecordCursor cursor;
        private long next;
        private boolean ended;

        Reading(RecordCursor cursor, long next) {
            this.cursor = cursor;
            this.next = next;
        }
    }

    private final RecordedRun run;
    private final String topic;
    private final RecordFetcher fetcher;
    private final Map<Integer, Reading> readings = new HashMap<>();
    /** Those that were read before their batch came, oldest first. */
    private final Map<Place, ConsumerRecord<byte[], byte[]>> kept = new LinkedHashMap<>();

    private long keptBytes;

    TrajectoryFeed(RecordedRun run) {
        this.run = run;
        this.topic = run.topics().trajectories();
        this.fetcher = run.fetcher();
    }

    /**
     * One record for each of a batch's entries, in their order.
     *
     * @throws ArchiveException naming the first that is not there
     */
    List<ConsumerRecord<byte[], byte[]>> of(LearnerBatch batch) {
        List<BatchEntry> entries = batch.getEntries();
        for (BatchEntry entry : entries) {
            if (!run.partitions(topic).contains(new TopicPartition(topic, entry.getPartition()))) {
                throw missing(topic, batch, entry, "the topic has no such partition");
            }
        }
        Integer[] inOrder = new Integer[entries.size()];
        Arrays.setAll(inOrder, e -> e);
        Arrays.sort(
                inOrder,
                Comparator.comparingInt((Integer e) -> entries.get(e).getPartition())
                        .thenComparingLong(e -> entries.get(e).getOffset()));
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>(Collections.nCopies(entries.size(), null));
        Map<Integer, List<Integer>> elsewhere = new TreeMap<>();
        for (Integer e : inOrder) {
            found.set(e, inPassing(entries.get(e).getPartition(), entries.get(e).getOffset()));
            if (found.get(e) == null) {
                elsewhere
                        .computeIfAbsent(entries.get(e).getPartition(), partition -> new ArrayList<>())
                        .add(e);
            }
        }
        elsewhere.forEach((partition, absent) -> fetch(partition, absent, entries, found));
        for (int e = 0; e < found.size(); e++) {
            if (found.get(e) == null) {
                throw missing(topic, batch, entries.get(e), "the log no longer holds it");
            }
        }
        return found;
    }

    /** A batch names what is not there. */
    static ArchiveException missing(String topic, LearnerBatch batch, BatchEntry entry, String why) {
        return new ArchiveException(
                "batch " + batch.getBatchId() + " names the trajectory of " + entry.getRolloutId() + " at "
                        + topic + "-" + entry.getPartition() + "@" + entry.getOffset() + ", and " + why
                        + "; choose a later range, or replay an archive that was exported in time");
    }

    /** The record, if it was read early or comes next; null if it has to be fetched. */
    private @Nullable ConsumerRecord<byte[], byte[]> inPassing(int partition, long offset) {
        Reading reading = readings.computeIfAbsent(
                partition, p -> new Reading(run.read(new TopicPartition(topic, p), offset), offset));
        if (offset < reading.next) {
            ConsumerRecord<byte[], byte[]> early = kept.remove(new Place(partition, offset));
            keptBytes -= early == null ? 0 : bytes(early);
            return early;
        }
        while (offset - reading.next <= READ_OVER && !reading.ended && reading.next <= offset) {
            Optional<ConsumerRecord<byte[], byte[]>> next = reading.cursor.next();
            reading.ended = next.isEmpty();
            if (next.isPresent()) {
                reading.next = next.get().offset() + 1;
                if (next.get().offset() == offset) {
                    return next.get();
                }
                keep(new Place(partition, next.get().offset()), next.get());
            }
        }
        return null;
    }

    private void fetch(
            int partition, List<Integer> absent, List<BatchEntry> entries, List<ConsumerRecord<byte[], byte[]>> found) {
        Map<Long, ConsumerRecord<byte[], byte[]>> fetched = new HashMap<>();
        long[] places = absent.stream()
                .mapToLong(e -> entries.get(e).getOffset())
                .distinct()
                .toArray();
        fetcher.fetch(new TopicPartition(topic, partition), places)
                .forEach(record -> fetched.put(record.offset(), record));
        absent.forEach(e -> found.set(e, fetched.get(entries.get(e).getOffset())));
    }

    private void keep(Place place, ConsumerRecord<byte[], byte[]> record) {
        kept.put(place, record);
        keptBytes += bytes(record);
        Iterator<ConsumerRecord<byte[], byte[]>> oldest = kept.values().iterator();
        while (keptBytes > KEPT_BYTES && oldest.hasNext()) {
            keptBytes -= bytes(oldest.next());
            oldest.remove();
        }
    }

    private static long bytes(ConsumerRecord<byte[], byte[]> record) {
        return OBJECT_BYTES + (record.value() == null ? 0 : record.value().length);
    }

    @Override
    public void close() {
        readings.values().forEach(reading -> reading.cursor.close());
        fetcher.close();
    }
}
