package dev.millrace.learner.batch;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NavigableSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CancellationException;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;

/**
 * Fetches the trajectories that a batch points at.
 *
 * <p>The members of a batch lie mostly in order on the log, mixed with those of batches to come: the reader moves
 * forward and keeps what it passes, undecoded and up to a number of bytes, for those batches. A member that is not kept
 * any more costs a seek back and nothing else. Used by one thread, except {@link #wakeup()}.
 */
public final class TrajectoryFetcher implements AutoCloseable {
    /** What a batch points at is there: a fetch at the end of one partition is not to hold up that of the next. */
    private static final int FETCH_WAIT_MS = 10;

    private final String topic;
    private final LogReader log;
    private final Deserializer<Trajectory> trajectories;
    private final PassedRecords passed;
    private final Duration limit;
    private final Map<Integer, Long> cursors = new HashMap<>();
    private int assigned = -1;

    /**
     * @param keptBytes most bytes of passed records kept for later batches
     * @param limit     longest wait without progress
     */
    public TrajectoryFetcher(LogConnection connection, long keptBytes, Duration limit) {
        this.topic = connection.topics().trajectories();
        this.log = new LogReader(
                connection.as("trajectories"),
                Map.of("auto.offset.reset", "none", "max.poll.records", 2000, "fetch.max.wait.ms", FETCH_WAIT_MS));
        this.trajectories =
                AvroSerde.of(Trajectory.class, connection.registry()).deserializer();
        this.passed = new PassedRecords(keptBytes);
        this.limit = limit;
    }

    /**
     * The trajectories of a batch, in the order of its entries.
     *
     * @throws TrajectoryUnavailableException naming the first that is not there, not readable, or not there in time
     * @throws CancellationException after {@link #wakeup()}
     */
    public List<Trajectory> fetch(LearnerBatch batch) {
        Map<Integer, NavigableSet<Long>> missing = new HashMap<>();
        for (BatchEntry entry : batch.getEntries()) {
            if (!missing.computeIfAbsent(entry.getPartition(), p -> new TreeSet<>())
                    .add(entry.getOffset())) {
                throw unavailable(
                        batch, entry.getPartition(), entry.getOffset(), "two entries of the batch reference it");
            }
        }
        Map<TopicPartition, Map<Long, byte[]>> found = new HashMap<>();
        missing.forEach((partition, offsets) -> found.put(
                new TopicPartition(topic, partition), fetch(batch, new TopicPartition(topic, partition), offsets)));
        List<Trajectory> result = new ArrayList<>(batch.getEntries().size());
        for (BatchEntry entry : batch.getEntries()) {
            result.add(decode(
                    batch,
                    entry,
                    found.getOrDefault(new TopicPartition(topic, entry.getPartition()), Map.of())
                            .get(entry.getOffset())));
        }
        return result;
    }

    private Map<Long, byte[]> fetch(LearnerBatch batch, TopicPartition partition, NavigableSet<Long> missing) {
        Map<Long, byte[]> found = passed.take(partition.partition(), missing);
        missing.removeAll(found.keySet());
        if (missing.isEmpty()) {
            return found;
        }
        moveTo(partition, missing.first());
        boolean isRead = read(batch, partition, missing, record -> {
            cursors.put(record.partition(), record.offset() + 1);
            if (missing.remove(record.offset())) {
                found.put(record.offset(), record.value());
            } else {
                passed.keep(record);
            }
        });
        if (!missing.isEmpty()) {
            throw unavailable(
                    batch,
                    partition.partition(),
                    missing.first(),
                    isRead
                            ? "no committed record has this offset"
                            : "no record came from there within " + limit.toMillis() + " ms (trajectory_timeout_ms)");
        }
        return found;
    }

    private void moveTo(TopicPartition partition, long offset) {
        if (assigned != partition.partition()) {
            log.consumer().assign(List.of(partition));
            assigned = partition.partition();
            Long cursor = cursors.get(assigned);
            if (cursor != null) {
                log.consumer().seek(partition, cursor);
            }
        }
        Long cursor = cursors.get(assigned);
        if (cursor == null || offset < cursor) {
            log.consumer().seek(partition, offset);
            cursors.put(assigned, offset);
        }
    }

    /** True if all is there, or passed. */
    private boolean read(
            LearnerBatch batch,
            TopicPartition partition,
            NavigableSet<Long> missing,
            Consumer<ConsumerRecord<byte[], byte[]>> reader) {
        try {
            return log.readUntil(
                    () -> missing.isEmpty() || log.position(partition) > missing.first(),
                    ReadLimit.withoutProgress(limit),
                    reader);
        } catch (WakeupException e) {
            throw new CancellationException("stopped while trajectories were being fetched");
        } catch (OffsetOutOfRangeException e) {
            throw unavailable(
                    batch,
                    partition.partition(),
                    missing.first(),
                    "retention deleted it; that topic's retention is shorter than the time from trajectory to step");
        }
    }

    private Trajectory decode(LearnerBatch batch, BatchEntry entry, byte @Nullable [] value) {
        try {
            Trajectory trajectory = trajectories.deserialize(topic, value);
            if (trajectory == null) {
                throw unavailable(batch, entry.getPartition(), entry.getOffset(), "the record has no value");
            }
            return trajectory;
        } catch (MalformedRecordException e) {
            throw unavailable(batch, entry.getPartition(), entry.getOffset(), String.valueOf(e.getMessage()));
        }
    }

    private TrajectoryUnavailableException unavailable(LearnerBatch batch, int partition, long offset, String why) {
        return new TrajectoryUnavailableException("batch " + batch.getBatchId() + " references a trajectory at " + topic
                + "-" + partition + "@" + offset + " that is not available: " + why);
    }

    /** Ends a {@link #fetch} under way, or the next one; from any thread. */
    public void wakeup() {
        log.wakeup();
    }

    @Override
    public void close() {
        log.close();
    }

    /**
     * Records that were passed on the way to others and may be asked for later, up to a number of bytes.
     *
     * <p>When there are too many bytes, those with the lowest offsets go: they were passed over longest ago, and most likely
     * belong to trajectories that no batch took. Not thread-safe.
     */
    static final class PassedRecords {
        private final long capacityBytes;
        private final Map<Integer, NavigableMap<Long, byte[]>> byPartition = new HashMap<>();
        private long bytes;

        PassedRecords(long capacityBytes) {
            this.capacityBytes = capacityBytes;
        }

        void keep(ConsumerRecord<byte[], byte[]> record) {
            if (record.value() == null) {
                return;
            }
            NavigableMap<Long, byte[]> kept = byPartition.computeIfAbsent(record.partition(), p -> new TreeMap<>());
            byte[] before = kept.put(record.offset(), record.value());
            bytes += record.value().length - (before == null ? 0 : before.length);
            while (bytes > capacityBytes && !kept.isEmpty()) {
                bytes -= kept.pollFirstEntry().getValue().length;
            }
        }

        /** Those of the offsets that are kept; they are not kept any longer, since a trajectory is in one batch only. */
        Map<Long, byte[]> take(int partition, Collection<Long> offsets) {
            Map<Long, byte[]> taken = new HashMap<>();
            NavigableMap<Long, byte[]> kept = byPartition.getOrDefault(partition, new TreeMap<>());
            for (long offset : offsets) {
                byte[] value = kept.remove(offset);
                if (value != null) {
                    bytes -= value.length;
                    taken.put(offset, value);
                }
            }
            return taken;
        }

        long bytes() {
            return bytes;
        }
    }
}
