package dev.millrace.learner.batch;

import dev.millrace.log.LogConnection;
import dev.millrace.log.follow.LogReader;
import dev.millrace.log.follow.ReadLimit;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.refusal.RefusalReason;
import dev.millrace.schemas.refusal.RefusedException;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.weights.PolicyPartition;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.Deserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the batches of one policy in order, from the offset that was committed with the newest version.
 *
 * <p>The partition is assigned, not subscribed to: there is one learner, its transactional id fences every other, and
 * a restart then waits for no rebalance. Used by one thread, except {@link #wakeup()}.
 */
public final class BatchReader implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(BatchReader.class);

    private final LogReader log;
    private final TopicPartition partition;
    private final BatchSequence sequence;
    private final Deserializer<LearnerBatch> batches;
    private final RefusedBatches refused;
    private BatchProgress progress;
    private final Queue<ConsumerRecord<byte[], byte[]>> polled = new ArrayDeque<>();

    /** @param newest what the newest version says; batches that were starved since then are known by the committed offset */
    public BatchReader(LogConnection connection, BatchProgress newest) {
        String topic = connection.topics().batches();
        this.log = new LogReader(
                connection,
                Map.of("group.id", connection.group("learner"), "auto.offset.reset", "none", "max.poll.records", 16));
        Consumer<byte[], byte[]> consumer = log.consumer();
        this.batches = AvroSerde.of(LearnerBatch.class, connection.registry()).deserializer();
        this.refused = new RefusedBatches(connection.topics().deadLetters(), connection.run());
        this.partition = new TopicPartition(
                topic, PolicyPartition.of(connection.run().policyId(), topic, consumer.partitionsFor(topic)));
        consumer.assign(List.of(partition));
        OffsetAndMetadata committed = consumer.committed(Set.of(partition)).get(partition);
        if (committed == null) {
            consumer.seek(partition, connection.lineage().beginning(topic, partition.partition()));
        } else {
            consumer.seek(partition, committed);
        }
        this.progress = Optional.ofNullable(committed)
                .flatMap(offset -> BatchProgress.parse(offset.metadata()))
                .filter(known -> known.batchId() > newest.batchId())
                .orElse(newest);
        this.sequence = new BatchSequence(connection.run(), progress.batchId(), committed != null);
        LOG.info(
                "reads {} from {}, batch {} is due",
                partition,
                committed == null ? "its beginning (no offset is committed)" : committed.offset(),
                sequence.next());
    }

    /** As whom to commit offsets. */
    public ConsumerGroupMetadata group() {
        return log.consumer().groupMetadata();
    }

    /** The batch that is due. */
    public long due() {
        return sequence.next();
    }

    /**
     * The next batch; empty if none came within the limit or {@link #wakeup()} was called.
     *
     * @throws OutOfSequenceException if what comes next cannot be trained on after what was
     */
    public Optional<IncomingBatch> poll(Duration limit) {
        long deadline = System.nanoTime() + limit.toNanos();
        do {
            while (!polled.isEmpty()) {
                Optional<IncomingBatch> next = next(polled.remove());
                if (next.isPresent()) {
                    return next;
                }
            }
            Duration left = Duration.ofNanos(Math.max(0, deadline - System.nanoTime()));
            try {
                log.readUntil(() -> !polled.isEmpty(), ReadLimit.within(left), polled::add);
            } catch (WakeupException e) {
                return Optional.empty();
            } catch (OffsetOutOfRangeException e) {
                throw new OutOfSequenceException("batch " + sequence.next() + " is missing: offset "
                        + e.offsetOutOfRangePartitions()
                        + " is no longer on the log; this learner was away for longer than the"
                        + " retention of that topic");
            }
        } while (!polled.isEmpty() || System.nanoTime() < deadline);
        return Optional.empty();
    }

    private Optional<IncomingBatch> next(ConsumerRecord<byte[], byte[]> record) {
        String where = partition + "@" + record.offset();
        try {
            LearnerBatch batch = batches.deserialize(record.topic(), record.value());
            if (batch == null) {
                throw new RefusedException(RefusalReason.UNREADABLE, "", "a batch has a value; this record has none");
            }
            if (!sequence.isNext(batch, where)) {
                LOG.info("passes over batch {} at {}: it was consumed before", batch.getBatchId(), where);
                return Optional.empty();
            }
            BatchProgress after = new BatchProgress(
                    batch.getBatchId(),
                    progress.rolloutsConsumed() + batch.getEntries().size());
            return Optional.of(new IncomingBatch(
                    batch,
                    partition,
                    new OffsetAndMetadata(record.offset() + 1, record.leaderEpoch(), after.text()),
                    after.rolloutsConsumed(),
                    refused.waiting()));
        } catch (MalformedRecordException e) {
            refused.add(record, new RefusedException(RefusalReason.UNREADABLE, "", String.valueOf(e.getMessage())));
            return Optional.empty();
        } catch (RefusedException e) {
            refused.add(record, e);
            return Optional.empty();
        }
    }

    /** The batch and what was refused before it are committed. */
    public void trained(IncomingBatch batch) {
        sequence.trained(batch.batch().getBatchId());
        progress = new BatchProgress(batch.batch().getBatchId(), batch.rolloutsConsumed());
        refused.written(batch.deadLetters().size());
    }

    /** Ends a {@link #poll} under way, or the next one; from any thread. */
    public void wakeup() {
        log.wakeup();
    }

    @Override
    public void close() {
        log.close();
    }
}
