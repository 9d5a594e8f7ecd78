package dev.millrace.replay;

import dev.millrace.archive.ArchiveException;
import dev.millrace.archive.RecordCursor;
import dev.millrace.archive.RecordedRun;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.topology.fetch.RecordFetcher;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

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

    private record Place(int partition, long offset) {
    }

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
        Map<Integer, TreeSet<Long>> wanted = new TreeMap<>();
        batch.getEntries().forEach(entry ->
            wanted.computeIfAbsent(entry.getPartition(), p -> new TreeSet<>()).add(entry.getOffset()));
        Map<Place, ConsumerRecord<byte[], byte[]>> found = new HashMap<>();
        wanted.forEach((partition, offsets) -> find(partition, offsets, found));
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>(batch.getEntries().size());
        for (BatchEntry entry : batch.getEntries()) {
            ConsumerRecord<byte[], byte[]> record = found.get(new Place(entry.getPartition(), entry.getOffset()));
            if (record == null) {
                throw missing(topic, batch, entry, "the log no longer holds it");
            }
            records.add(record);
        }
        return records;
    }

    /** A batch names what is not there. */
    static ArchiveException missing(String topic, LearnerBatch batch, BatchEntry entry, String why) {
        return new ArchiveException("batch " + batch.getBatchId() + " names the trajectory of " + entry.getRolloutId() + " at "
            + topic + "-" + entry.getPartition() + "@" + entry.getOffset() + ", and " + why
            + "; choose a later range, or replay an archive that was exported in time");
    }

    private void find(int partition, TreeSet<Long> offsets, Map<Place, ConsumerRecord<byte[], byte[]>> found) {
        Reading reading = readings.computeIfAbsent(partition,
            p -> new Reading(run.read(new TopicPartition(topic, p), offsets.first()), offsets.first()));
        List<Long> elsewhere = new ArrayList<>();
        for (long offset : offsets) {
            Place place = new Place(partition, offset);
            ConsumerRecord<byte[], byte[]> early = kept.remove(place);
            if (early != null) {
                keptBytes -= bytes(early);
                found.put(place, early);
            } else if (offset < reading.next || offset - reading.next > READ_OVER || reading.ended) {
                elsewhere.add(offset);
            } else {
                readTo(reading, place, found);
            }
        }
        if (!elsewhere.isEmpty()) {
            long[] places = elsewhere.stream().mapToLong(Long::longValue).toArray();
            fetcher.fetch(new TopicPartition(topic, partition), places)
                .forEach(record -> found.put(new Place(partition, record.offset()), record));
        }
    }

    private void readTo(Reading reading, Place wanted, Map<Place, ConsumerRecord<byte[], byte[]>> found) {
        while (reading.next <= wanted.offset()) {
            Optional<ConsumerRecord<byte[], byte[]>> record = reading.cursor.next();
            if (record.isEmpty()) {
                reading.ended = true;
                return;
            }
            reading.next = record.get().offset() + 1;
            if (record.get().offset() == wanted.offset()) {
                found.put(wanted, record.get());
            } else {
                keep(new Place(wanted.partition(), record.get().offset()), record.get());
            }
        }
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
