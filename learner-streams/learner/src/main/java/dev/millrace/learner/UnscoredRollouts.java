package dev.millrace.learner;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;

/**
 * The oldest version that a rollout on the log was sampled by and is still to be scored under.
 *
 * <p>Those are the rollouts from the scorers' committed offsets on. Only they are read, each once: what scorers have done
 * in the meantime is passed over unread. Holds one number per rollout that waits. Used by one thread.
 */
final class UnscoredRollouts implements AutoCloseable {
    private final RunIdentity run;
    private final String scorers;
    private final Admin admin;
    private final LogReader log;
    private final Deserializer<Rollout> rollouts;
    private final List<TopicPartition> partitions;
    private final Map<TopicPartition, NavigableMap<Long, Long>> oldestByOffset = new HashMap<>();

    UnscoredRollouts(LogConnection connection, Admin admin) {
        this.run = connection.run();
        this.scorers = connection.group("scorer");
        this.admin = admin;
        this.rollouts = AvroSerde.of(Rollout.class, connection.registry()).deserializer();
        this.log = new LogReader(connection);
        this.partitions = log.fromBeginning(connection.topics().rollouts());
        partitions.forEach(partition -> oldestByOffset.put(partition, new TreeMap<>()));
    }

    /**
     * Reads what is new and says what is oldest among what waits.
     *
     * @return empty if every rollout on the log is scored
     * @throws TimeoutException if the end was not reached, or the brokers did not answer, within the limit; what was read
     *     is kept, and the next call goes on from there
     */
    OptionalLong oldestVersion(Duration limit) throws TimeoutException, InterruptedException {
        Map<TopicPartition, Long> ends = log.consumer().endOffsets(partitions, limit);
        Map<TopicPartition, OffsetAndMetadata> scored = scored(limit);
        for (TopicPartition partition : partitions) {
            OffsetAndMetadata progress = scored.get(partition);
            if (progress != null) {
                Objects.requireNonNull(oldestByOffset.get(partition))
                        .headMap(progress.offset())
                        .clear();
                if (log.position(partition) < progress.offset()) {
                    log.consumer().seek(partition, progress.offset());
                }
            }
        }
        if (!log.readTo(ends, ReadLimit.within(limit), this::accept)) {
            throw new TimeoutException("the rollouts that wait to be scored were not read within " + limit.toMillis()
                    + " ms; the rest follows");
        }
        return oldestByOffset.values().stream()
                .flatMap(waiting -> waiting.values().stream())
                .mapToLong(Long::longValue)
                .min();
    }

    private Map<TopicPartition, OffsetAndMetadata> scored(Duration limit)
            throws TimeoutException, InterruptedException {
        try {
            return admin.listConsumerGroupOffsets(scorers)
                    .partitionsToOffsetAndMetadata()
                    .get(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (ExecutionException e) {
            Throwable cause = Objects.requireNonNullElse(e.getCause(), e);
            throw new IllegalStateException("the scorers' progress cannot be read: " + cause.getMessage(), cause);
        }
    }

    private void accept(ConsumerRecord<byte[], byte[]> record) {
        if (record.value() == null) {
            return;
        }
        try {
            Rollout rollout = rollouts.deserialize(record.topic(), record.value());
            if (run.owns(rollout.getRunId(), rollout.getEpoch())) {
                rollout.getVersionSpans().stream()
                        .mapToLong(VersionSpan::getVersion)
                        .min()
                        .ifPresent(oldest -> oldestByOffset
                                .computeIfAbsent(
                                        new TopicPartition(record.topic(), record.partition()),
                                        partition -> new TreeMap<>())
                                .put(record.offset(), oldest));
            }
        } catch (MalformedRecordException e) {
            return; // no rollout: the topology dead-letters it, and nobody scores it
        }
    }

    @Override
    public void close() {
        log.close();
    }
}
