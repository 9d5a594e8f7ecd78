package dev.millrace.workloads;

import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.log.scan.LogReader;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.serde.AvroRecordDeserializer;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.task.OutcomeReason;
import dev.millrace.workloads.topology.LoadException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Passes every committed record of a topic to a consumer on its own thread, and counts rollouts that leave the run
 * without a batch. Belongs to no group and commits nothing. {@link #close} waits for the thread.
 */
public final class TopicWatch implements AutoCloseable {
    private final LogReader log;
    private final Departures departures = new Departures();
    private final Thread thread;
    private final CountDownLatch ended = new CountDownLatch(1);
    private final AtomicReference<RuntimeException> failure = new AtomicReference<>();

    /**
     * Starts at the beginning of every partition.
     *
     * @param viewer called by the watch's thread alone
     */
    public TopicWatch(LogConnection connection, String topic, Consumer<ConsumerRecord<byte[], byte[]>> viewer) {
        String outcomes = connection.topics().outcomes();
        String deadLetters = connection.topics().deadLetters();
        AvroRecordDeserializer<Outcome> decoder =
                AvroSerde.of(Outcome.class, connection.registry()).deserializer();
        log = new LogReader(connection);
        List<TopicPartition> partitions = new ArrayList<>();
        for (String name : List.of(topic, outcomes, deadLetters)) {
            partitions.addAll(log.partitionsOf(name));
        }
        log.consumer().assign(partitions);
        log.consumer().seekToBeginning(partitions);
        thread = new Thread(
                () -> watch(record -> {
                    if (record.topic().equals(outcomes)) {
                        Outcome outcome = decoder.deserialize(outcomes, record.value());
                        if (outcome != null) {
                            departures.left(outcome);
                        }
                    } else if (record.topic().equals(deadLetters)) {
                        departures.refused(record);
                    } else {
                        viewer.accept(record);
                    }
                }),
                "watch of " + topic);
        thread.setDaemon(true);
        thread.start();
    }

    private void watch(Consumer<ConsumerRecord<byte[], byte[]>> viewer) {
        try (log) {
            log.follow(viewer, () -> {});
        } catch (RuntimeException e) {
            failure.set(e);
        } finally {
            ended.countDown();
        }
    }

    public Departures departures() {
        return departures;
    }

    /** Throws if watching failed. */
    public void requireWatching() {
        if (failure.get() != null) {
            throw new LoadException(
                    "a topic could not be watched: " + failure.get().getMessage(), failure.get());
        }
    }

    /** Throws if watching failed, or a rollout left: a wait for every rollout would never end. */
    public void requireAllToCome() {
        requireWatching();
        departures.requireNone();
    }

    @Override
    public void close() {
        log.stop();
        try {
            ended.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Counts records that never reach a batch, by reason. Written by one thread, read by any. */
    public static final class Departures {
        private static final String REFUSED = "refused";

        private final Map<String, Long> byReason = new TreeMap<>();
        private String first = "";

        synchronized void left(Outcome outcome) {
            count(outcome.getReason(), outcome.getRolloutId() + ": " + outcome.getDetail());
        }

        synchronized void refused(ConsumerRecord<byte[], byte[]> deadLetter) {
            count(REFUSED, DeadLetterHeaders.text(deadLetter.headers(), DeadLetterHeaders.MESSAGE));
        }

        private void count(String reason, String sentence) {
            if (first.isEmpty()) {
                first = sentence;
            }
            byReason.merge(reason, 1L, Long::sum);
        }

        public synchronized long of(OutcomeReason reason) {
            return byReason.getOrDefault(reason.code(), 0L);
        }

        @Override
        public synchronized String toString() {
            return byReason.isEmpty()
                    ? "no rollout left without reaching a batch"
                    : byReason.entrySet().stream()
                                    .map(reason -> reason.getValue() + " as " + reason.getKey())
                                    .collect(Collectors.joining(", "))
                            + " left without reaching a batch; the first, " + first;
        }

        synchronized void requireNone() {
            if (!byReason.isEmpty()) {
                throw new LoadException("cannot see every rollout in a batch: " + this);
            }
        }
    }

    /** Maps batches to synthetic rollouts. */
    public static final class BatchedRollouts {
        private BatchedRollouts() {}

        public static Consumer<ConsumerRecord<byte[], byte[]>> batches(
                LogConnection connection, Consumer<LearnerBatch> viewer) {
            AvroRecordDeserializer<LearnerBatch> decoder =
                    AvroSerde.of(LearnerBatch.class, connection.registry()).deserializer();
            return record -> viewer.accept(decoder.deserialize(record.topic(), record.value()));
        }

        /** The index of a synthetic rollout, from its name {@code group-G/S}. */
        public static long index(BatchEntry entry, int groupSize) {
            String name = entry.getRolloutId();
            int slash = name.indexOf('/');
            try {
                return Long.parseLong(name, name.indexOf('-') + 1, slash, 10) * groupSize
                        + Long.parseLong(name, slash + 1, name.length(), 10);
            } catch (NumberFormatException | IndexOutOfBoundsException e) {
                throw new LoadException("rollout '" + name + "' is none of this load's", e);
            }
        }
    }
}
