package dev.millrace.scorer;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.EpochBeginning;
import dev.millrace.log.transaction.TransactionalWriter;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.run.ServerKey;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serializer;
import org.jspecify.annotations.Nullable;

/**
 * The scorer's side of the log: reads rollouts, and writes scores together with the progress past their rollouts.
 *
 * <p>Nothing is under way between {@link #poll} and {@link #commit}, so a rebalance, which happens in poll, finds
 * nothing unfinished. Owned by the scoring thread, except {@link #wakeup()}.
 */
final class ScoreLog implements AutoCloseable {
    private static final int SESSION_TIMEOUT_MS = 6_000;
    private static final int TRANSACTION_TIMEOUT_MS = 30_000;
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);

    private final RunTopics topics;
    private final EpochLineage lineage;
    private final String scoresTopic;
    private final String scorerId;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final TransactionalWriter writer;
    private final Serializer<Score> scores;
    private final Serializer<Serving> servings;
    private Map<TopicPartition, OffsetAndMetadata> committed = Map.of();

    ScoreLog(LogConnection connection, ScorerPurpose purpose, ScorerConfig config) {
        String member = purpose.role() + "-" + config.id();
        this.topics = connection.topics();
        this.lineage = connection.lineage();
        this.scoresTopic = purpose.topic(topics);
        this.scorerId = config.id();
        this.scores = AvroSerde.of(Score.class, connection.registry()).serializer();
        this.servings = AvroSerde.of(Serving.class, connection.registry()).serializer();
        this.consumer = new KafkaConsumer<>(
                connection.consumer(Map.ofEntries(
                        Map.entry("group.id", connection.group(purpose.role())),
                        Map.entry("group.instance.id", connection.scoped(member)),
                        Map.entry("client.id", member),
                        Map.entry("partition.assignment.strategy", CooperativeStickyAssignor.class.getName()),
                        Map.entry("session.timeout.ms", SESSION_TIMEOUT_MS),
                        Map.entry("heartbeat.interval.ms", SESSION_TIMEOUT_MS / 4),
                        Map.entry("isolation.level", "read_committed"),
                        Map.entry("auto.offset.reset", "earliest"),
                        Map.entry("enable.auto.commit", false),
                        Map.entry("fetch.max.wait.ms", 100), // closing waits for the fetch under way
                        // the scoring thread may wait so long for the log
                        Map.entry(
                                "max.poll.interval.ms",
                                Math.toIntExact(connection.patience().toMillis()) + SESSION_TIMEOUT_MS),
                        Map.entry("max.poll.records", config.maxBatchSequences()))),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer());
        this.writer = TransactionalWriter.of(
                connection,
                connection.scoped(member),
                TRANSACTION_TIMEOUT_MS,
                Map.of("client.id", member, "max.block.ms", config.commitTimeoutMs()));
    }

    /**
     * Aborts what a predecessor of the same id left open, shuts it out, and joins the group.
     *
     * @return false if it was stopped before that
     */
    boolean open(BooleanSupplier stopped) {
        return writer.takeOver(
                stopped,
                () -> consumer.subscribe(List.of(topics.rollouts()), new ConsumerRebalanceListener() {
                    @Override
                    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                        EpochBeginning.seek(consumer, partitions, lineage);
                    }

                    @Override
                    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                        // nothing is under way when the group moves
                    }
                }));
    }

    ConsumerRecords<byte[], byte[]> poll(Duration limit) {
        try {
            return consumer.poll(limit);
        } catch (WakeupException e) {
            return ConsumerRecords.empty(); // the thread that woke us has set the next check
        } catch (FencedInstanceIdException e) {
            throw takenOver(e);
        }
    }

    /**
     * Writes scores, each into the partition of its rollout, and the progress past everything in {@code read}, or
     * nothing of it.
     *
     * @param serving may be null
     * @param stopped gives up attempts that fail
     * @return false if nothing is written, because the group has given our partitions away or the log did not take it; what
     *     is still ours is read again
     */
    boolean commit(
            ConsumerRecords<byte[], byte[]> read,
            List<Score> made,
            @Nullable Serving serving,
            BooleanSupplier stopped) {
        // with each leader epoch, to detect where a truncated log diverges
        Map<TopicPartition, OffsetAndMetadata> progress = new HashMap<>(read.nextOffsets());
        progress.keySet().retainAll(read.partitions());
        try {
            writer.write(out -> {
                for (Score score : made) {
                    out.send(new ProducerRecord<>(
                            scoresTopic,
                            score.getRolloutSource().getPartition(),
                            score.getGroupId().getBytes(StandardCharsets.UTF_8),
                            scores.serialize(scoresTopic, score)));
                }
                if (serving != null) {
                    out.send(new ProducerRecord<>(
                            topics.serving(), ServerKey.of(serving), servings.serialize(topics.serving(), serving)));
                }
                if (!progress.isEmpty()) {
                    out.sendOffsetsToTransaction(progress, consumer.groupMetadata());
                }
            });
            return true;
        } catch (CommitFailedException e) {
            readAgain(read);
            return false;
        } catch (RuntimeException e) {
            if (e.getCause() instanceof FencedInstanceIdException) {
                throw takenOver(e);
            }
            return writer.recover(e, stopped, this::seekToCommitted) && isCommitted(progress);
        }
    }

    /** Takes the position from the log, so an uncertain last transaction does not matter. */
    private void seekToCommitted() {
        committed = consumer.committed(consumer.assignment());
        for (TopicPartition partition : consumer.assignment()) {
            OffsetAndMetadata offset = committed.get(partition);
            if (offset == null) {
                consumer.seekToBeginning(List.of(partition));
            } else {
                consumer.seek(partition, offset);
            }
        }
        EpochBeginning.seek(consumer, consumer.assignment(), lineage);
    }

    private boolean isCommitted(Map<TopicPartition, OffsetAndMetadata> progress) {
        return !progress.isEmpty()
                && progress.entrySet().stream().allMatch(wanted -> {
                    OffsetAndMetadata there = committed.get(wanted.getKey());
                    return there != null && there.offset() >= wanted.getValue().offset();
                });
    }

    private void readAgain(ConsumerRecords<byte[], byte[]> read) {
        for (TopicPartition partition : read.partitions()) {
            if (consumer.assignment().contains(partition)) {
                consumer.seek(partition, read.records(partition).get(0).offset());
            }
        }
    }

    private IllegalStateException takenOver(RuntimeException e) {
        return new IllegalStateException(
                "fenced by another scorer with the id " + scorerId + "; every scorer of a run needs an id of its own",
                e);
    }

    /** Makes a waiting {@link #poll} return. Thread-safe. */
    void wakeup() {
        consumer.wakeup();
    }

    @Override
    public void close() {
        writer.close();
        consumer.close(
                CloseOptions.timeout(CLOSE_LIMIT).withGroupMembershipOperation(GroupMembershipOperation.LEAVE_GROUP));
    }
}
