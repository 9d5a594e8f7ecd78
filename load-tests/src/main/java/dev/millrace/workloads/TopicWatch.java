package dev.millrace.workloads;

import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.log.scan.LogReader;
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
 * Shows every committed record of a topic to somebody as soon as it is visible, on a thread of its own, and counts the rollouts
 * that leave the run without reaching a batch: its outcomes and dead letters.
 *
 * <p>It belongs to no group and commits nothing. Closing it waits for the thread.
 */
public final class TopicWatch implements AutoCloseable {
    private final LogReader log;
    private final Departures departures = new Departures();
    private final Thread thread;
    private final CountDownLatch ended = new CountDownLatch(1);
    private final AtomicReference<RuntimeException> failure = new AtomicReference<>();

    /**
     * Begins at the beginning of every partition.
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

    /** What left the run without reaching a batch. */
    public Departures departures() {
        return departures;
    }

    /** Refuses to go on if watching has failed. */
    public void requireWatching() {
        if (failure.get() != null) {
            throw new LoadException(
                    "a topic could not be watched: " + failure.get().getMessage(), failure.get());
        }
    }

    /** Refuses to go on if watching has failed, or once a rollout left: a wait for every rollout would then never end. */
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

    /** Counts, by reason, the records of a run that never reach a batch. Written by one thread, read by any. */
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

        /** How many left for this reason so far. */
        public synchronized long of(OutcomeReason reason) {
            return byReason.getOrDefault(reason.code(), 0L);
        }

        /** The counts and the first one's reason, as the end of a sentence. */
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
}
