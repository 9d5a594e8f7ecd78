package dev.millrace.learner.batch;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
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
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the batches of one policy in order, each once.
 *
 * <p>Which batch is due follows from {@link ConsumedBatches}; the committed offset only says where to look for it. A batch that
 * was consumed is passed over, as is a copy of one; one that is ahead waits; what is none of this run goes to the dead letters.
 * Where the log has lost records, the reader says so, and looks for the due batch before the place that is lost.
 *
 * <p>The partition is assigned, not subscribed to: there is one learner, its transactional id fences every other, and
 * a restart then waits for no rebalance. Used by one thread, except {@link #wakeup()}.
 */
public final class BatchReader implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(BatchReader.class);

    private final LogReader log;
    private final TopicPartition partition;
    private final Duration limit;
    private final ConsumedBatches consumed;
    private final BatchSequence sequence;
    private final Deserializer<LearnerBatch> batches;
    private final RefusedBatches refused;
    private final BatchAlarms alarms;
    private final BatchCursor cursor;
    private final AheadBatches ahead = new AheadBatches();
    private final TrainedTrajectories trajectories = new TrainedTrajectories();
    private final Queue<ConsumerRecord<byte[], byte[]>> polled = new ArrayDeque<>();
    private final UnusableBatches unusable = new UnusableBatches(System::nanoTime);

    private BatchProgress progress;
    private @Nullable ConsumerRecord<byte[], byte[]> current;
    /** Whether all of the log was searched for what those that are ahead wait for. */
    private boolean isSearched;

    /**
     * @param newest version
     * @param limit of every question to the log
     */
    public BatchReader(LogConnection connection, PolicyVersion newest, Duration limit) {
        this(connection, newest, newest.getVersion(), limit);
    }

    /**
     * Reads batches again that made versions which are there.
     *
     * @param from the version behind which to begin
     * @param newest the newest that there is
     * @param limit of every question to the log
     */
    public static BatchReader again(
            LogConnection connection, PolicyVersion from, PolicyVersion newest, Duration limit) {
        return new BatchReader(connection, from, newest.getVersion(), limit);
    }

    private BatchReader(LogConnection connection, PolicyVersion newest, long known, Duration limit) {
        String topic = connection.topics().batches();
        this.limit = limit;
        this.log = new LogReader(
                connection,
                Map.of("group.id", connection.group("learner"), "auto.offset.reset", "none", "max.poll.records", 16));
        try {
            this.batches =
                    AvroSerde.of(LearnerBatch.class, connection.registry()).deserializer();
            this.refused = new RefusedBatches(connection.topics().deadLetters(), connection.run());
            this.partition = new TopicPartition(
                    topic,
                    PolicyPartition.of(
                            connection.run().policyId(), topic, log.consumer().partitionsFor(topic)));
            log.consumer().assign(List.of(partition));
            Optional<OffsetAndMetadata> committed = committed();
            this.consumed = ConsumedBatches.of(
                    newest,
                    ConsumedBatches.stepsAfter(connection, newest, limit),
                    committed.flatMap(offset -> BatchProgress.parse(offset.metadata())));
            this.progress = consumed.progress();
            this.alarms = new BatchAlarms(connection, partition, ConsumedBatches.partition(connection, log));
            ConsumedBatches.lostSteps(connection, newest, progress, limit).ifPresent(alarms::stepsLost);
            this.sequence = new BatchSequence(connection.run(), progress.batchId());
            this.cursor = new BatchCursor(connection, log, partition, limit, sequence, batches, alarms, committed);
        } catch (RuntimeException e) {
            log.close();
            throw e;
        }
        LOG.info(
                "reads {} from {}, batch {} is due{}",
                partition,
                log.position(partition),
                sequence.next(),
                consumed.lostVersion() <= known
                        ? ""
                        : "; the versions up to " + consumed.lostVersion() + " that were made before are no longer on "
                                + connection.topics().policyVersions()
                                + ", and are learnt again from their batches");
    }

    private Optional<OffsetAndMetadata> committed() {
        return Optional.ofNullable(
                log.consumer().committed(Set.of(partition), limit).get(partition));
    }

    /** As whom to commit offsets. */
    public ConsumerGroupMetadata group() {
        return log.consumer().groupMetadata();
    }

    /** The batch that is due. */
    public long due() {
        return sequence.next();
    }

    /** What was consumed when reading began. */
    public ConsumedBatches consumed() {
        return consumed;
    }

    /** Ids of batches that wait for the due one, lowest first. */
    public List<Long> ahead() {
        return ahead.ids();
    }

    /** Whether the due batch is known to have been consumed once, by a learner whose version of it the log has lost. */
    public boolean isDueAgain() {
        return consumed.learntBefore().containsKey(due());
    }

    /**
     * Whether somebody else has committed that batches are consumed which this reader still waits for; false where that cannot
     * be asked now.
     */
    public boolean isOvertaken() {
        try {
            return committed()
                    .flatMap(offset -> BatchProgress.parse(offset.metadata()))
                    .filter(said -> said.batchId() > progress.batchId())
                    .isPresent();
        } catch (TimeoutException e) {
            return false;
        }
    }

    /** The next batch; empty if none came within the limit or {@link #wakeup()} was called. */
    public Optional<IncomingBatch> poll(Duration wait) {
        long deadline = System.nanoTime() + wait.toNanos();
        do {
            while (!polled.isEmpty()) {
                Optional<IncomingBatch> next = next(polled.remove());
                if (next.isPresent()) {
                    return next;
                }
            }
            Optional<IncomingBatch> waiting = isReadToItsEnd() ? waiting() : Optional.empty();
            if (waiting.isPresent()) {
                return waiting;
            }
            Duration left = Duration.ofNanos(Math.max(0, deadline - System.nanoTime()));
            try {
                log.readUntil(() -> !polled.isEmpty(), ReadLimit.within(left), polled::add);
            } catch (WakeupException e) {
                return Optional.empty();
            } catch (OffsetOutOfRangeException e) { // the log lost its tail, or its head, while it was read
                cursor.toDue();
                polled.clear();
            }
        } while (!polled.isEmpty() || System.nanoTime() < deadline);
        return Optional.empty();
    }

    /** Whether the log has nothing more by now, and the due batch was not in it. */
    public boolean hasReadAll() {
        return polled.isEmpty() && isReadToItsEnd();
    }

    private boolean isReadToItsEnd() {
        return log.consumer().currentLag(partition).orElse(1) == 0;
    }

    /** The due batch, where it does not come behind what was read: one that waited, or could not be trained on before. */
    private Optional<IncomingBatch> waiting() {
        Optional<ConsumerRecord<byte[], byte[]>> early = ahead.take(sequence.next());
        if (early.isPresent()) {
            return next(early.get());
        }
        Optional<ConsumerRecord<byte[], byte[]>> again = unusable.takeForRetry();
        if (again.isPresent()) {
            return next(again.get());
        }
        boolean isToBeSearched = ahead.ids().isEmpty() ? ahead.takeForgot() : !isSearched;
        if (isToBeSearched && unusable.isEmpty()) {
            isSearched = true;
            cursor.toBeginning();
            polled.clear();
        }
        return Optional.empty();
    }

    private Optional<IncomingBatch> next(ConsumerRecord<byte[], byte[]> record) {
        boolean isNew = cursor.read(record);
        try {
            LearnerBatch batch = batches.deserialize(record.topic(), record.value());
            if (batch == null) {
                throw new RefusedException(RefusalReason.UNREADABLE, "", "a batch has a value; this record has none");
            }
            return switch (sequence.placeOf(batch)) {
                case KNOWN -> {
                    LOG.debug(
                            "passes over batch {} at offset {}: it was consumed", batch.getBatchId(), record.offset());
                    yield Optional.empty();
                }
                case AHEAD -> {
                    isAhead(batch, record);
                    yield Optional.empty();
                }
                case DUE -> {
                    trajectories.requireNew(batch);
                    current = record;
                    yield Optional.of(incoming(batch, record));
                }
            };
        } catch (MalformedRecordException e) {
            refuse(record, isNew, RefusalReason.UNREADABLE, "", String.valueOf(e.getMessage()));
        } catch (RefusedException e) {
            refuse(
                    record,
                    isNew,
                    e.refusal().reason(),
                    e.refusal().field(),
                    e.refusal().message());
            alarms.foreign(record, e);
        }
        return Optional.empty();
    }

    private void isAhead(LearnerBatch batch, ConsumerRecord<byte[], byte[]> record) throws RefusedException {
        if (batch.getEntries().isEmpty()) {
            throw new RefusedException(
                    RefusalReason.IDENTITY,
                    "batch_id",
                    "batch " + batch.getBatchId() + " comes before batch " + sequence.next() + " and has no entry");
        }
        trajectories.requireNew(batch);
        if (ahead.ids().isEmpty()) {
            LOG.warn(
                    "batch {} at {}@{} comes before batch {}, and waits for it",
                    batch.getBatchId(),
                    partition,
                    record.offset(),
                    sequence.next());
        }
        ahead.add(batch.getBatchId(), record);
    }

    private void refuse(
            ConsumerRecord<byte[], byte[]> record, boolean isNew, RefusalReason reason, String field, String why) {
        if (isNew) { // the dead letter of what was read before went with the offset behind it
            refused.add(record, new RefusedException(reason, field, why));
        }
    }

    private IncomingBatch incoming(LearnerBatch batch, ConsumerRecord<byte[], byte[]> record) {
        BatchProgress after = new BatchProgress(
                batch.getBatchId(),
                progress.rolloutsConsumed() + batch.getEntries().size());
        return new IncomingBatch(batch, partition, cursor.behind(record), after, refused.waiting());
    }

    /** The batch given last cannot be trained on: another one of its id may come, and it is tried again from time to time. */
    public void setAside() {
        if (current != null) {
            unusable.add(current);
            current = null;
        }
    }

    /** The batch and what was refused before it are committed. */
    public void trained(IncomingBatch batch) {
        sequence.consumed(batch.batch().getBatchId());
        progress = batch.progress();
        refused.written(batch.deadLetters().size());
        trajectories.add(batch.batch());
        alarms.trained();
        for (ConsumerRecord<byte[], byte[]> record : unusable.takeAll()) {
            refused.add(
                    record,
                    new RefusedException(
                            RefusalReason.MISFIT,
                            "entries",
                            "it cannot be trained on, and another batch " + progress.batchId() + " was"));
        }
        if (current != null) {
            for (ConsumerRecord<byte[], byte[]> misplaced : ahead.consumed(current.offset())) {
                refused.add(
                        misplaced,
                        new RefusedException(
                                RefusalReason.IDENTITY,
                                "batch_id",
                                "it is out of place: behind it come batches that go before it, such as batch "
                                        + progress.batchId()));
            }
        }
        isSearched &= !ahead.ids().isEmpty();
        current = null;
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
