package dev.millrace.learner.batch;

import dev.millrace.log.Alarms;
import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.DeadLetters;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.LongSupplier;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.ProducerRecord;
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
 * <p>{@link ConsumedBatches} decides which batch is due; the committed offset only tells where to search. The reader skips
 * consumed batches and their copies, holds batches that are ahead, and makes dead letters of foreign records. If the log lost
 * records, it raises an alarm and searches for the due batch before the gap.
 *
 * <p>The partition is assigned, not subscribed: the transactional id fences other learners, and a restart waits for no
 * rebalance. Used by one thread, except {@link #wakeup()}.
 */
public final class BatchReader implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(BatchReader.class);

    private static final String TAIL_LOST = "log-tail-lost";
    private static final String REMOVED = "records-removed";
    private static final String FOREIGN = "foreign-batch";
    private static final int FIRST_LOOK_BACK = 8;

    private final LogConnection connection;
    private final Alarms alarms;
    private final LogReader log;
    private final TopicPartition partition;
    /** Partition of the training log, as an alarm names it. */
    private final String trainingLog;

    private final Duration limit;
    private final ConsumedBatches consumed;
    private final BatchSequence sequence;
    private final Deserializer<LearnerBatch> batches;
    /** Dead letters of refused records; their offsets are committed only with them, so that each is written exactly once. */
    private final List<ProducerRecord<byte[], byte[]>> letters = new ArrayList<>();

    private final AheadBatches ahead = new AheadBatches();
    private final TrainedTrajectories trajectories = new TrainedTrajectories();
    private final Queue<ConsumerRecord<byte[], byte[]>> polled = new ArrayDeque<>();
    private final UnusableBatches unusable = new UnusableBatches(System::nanoTime);

    private BatchProgress progress;
    /** This learner or an earlier one has read every record before this offset. */
    private long readBefore;

    private @Nullable ConsumerRecord<byte[], byte[]> current;
    /** Whether the whole log was searched for the due batch while others are ahead. */
    private boolean isSearched;

    /**
     * @param from version before the first batch: the newest, or an older one to read its successors' batches again
     * @param newest number of the newest version
     * @param limit timeout of each request to the log
     */
    public BatchReader(LogConnection connection, PolicyVersion from, long newest, Duration limit) {
        this.connection = connection;
        this.alarms = connection.alarms();
        this.limit = limit;
        this.log = LogReader.following(
                connection.as("batches"),
                Map.of("group.id", connection.group("learner"), "auto.offset.reset", "none", "max.poll.records", 16));
        try {
            this.batches =
                    AvroSerde.of(LearnerBatch.class, connection.registry()).deserializer();
            this.partition = ConsumedBatches.partition(
                    connection, log, connection.topics().batches());
            log.consumer().assign(List.of(partition));
            Optional<OffsetAndMetadata> committed = committed();
            this.consumed = ConsumedBatches.of(
                    from,
                    ConsumedBatches.stepsAfter(connection, from, limit),
                    committed.flatMap(offset -> BatchProgress.parse(offset.metadata())));
            this.progress = consumed.progress();
            this.trainingLog = ConsumedBatches.partition(
                            connection, log, connection.topics().trainingLog())
                    .toString();
            ConsumedBatches.lostSteps(connection, from, progress, limit)
                    .ifPresent(lost -> alarms.raise(TAIL_LOST, trainingLog, lost, connection.command("repair")));
            this.sequence = new BatchSequence(connection.run(), progress.batchId());
            long begin = begin();
            this.readBefore = committed.map(OffsetAndMetadata::offset).orElse(begin);
            seekDue(begin);
        } catch (RuntimeException e) {
            log.close();
            throw e;
        }
        LOG.info(
                "reads {} from {}, batch {} is due{}",
                partition,
                log.position(partition),
                sequence.next(),
                consumed.lostVersion() <= newest
                        ? ""
                        : "; the versions up to " + consumed.lostVersion() + " are no longer on "
                                + connection.topics().policyVersions()
                                + ", and are retrained from their batches");
    }

    private Optional<OffsetAndMetadata> committed() {
        return Optional.ofNullable(
                log.consumer().committed(Set.of(partition), limit).get(partition));
    }

    /** Group to commit offsets for. */
    public ConsumerGroupMetadata group() {
        return log.consumer().groupMetadata();
    }

    public long due() {
        return sequence.next();
    }

    public ConsumedBatches consumed() {
        return consumed;
    }

    /** Ids of batches that wait for the due one, lowest first. */
    public List<Long> ahead() {
        return ahead.ids();
    }

    /** Whether the due batch was consumed before, and the log lost its version. */
    public boolean isDueAgain() {
        return consumed.learntBefore().containsKey(due());
    }

    /**
     * Whether another learner has committed batches that this reader still waits for; false if the broker does not answer.
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
            } catch (OffsetOutOfRangeException e) { // the log lost its tail or head meanwhile
                seekDue(begin());
                polled.clear();
            }
        } while (!polled.isEmpty() || System.nanoTime() < deadline);
        return Optional.empty();
    }

    /** Whether everything on the log was read without finding the due batch. */
    public boolean hasReadAll() {
        return polled.isEmpty() && isReadToItsEnd();
    }

    private boolean isReadToItsEnd() {
        return log.consumer().currentLag(partition).orElse(1) == 0;
    }

    /** The due batch from those held: one that was ahead, or one to retry. */
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
            log.consumer().seek(partition, begin()); // of the epoch
            polled.clear();
        }
        return Optional.empty();
    }

    private Optional<IncomingBatch> next(ConsumerRecord<byte[], byte[]> record) {
        boolean isNew = record.offset() >= readBefore;
        readBefore = Math.max(readBefore, record.offset() + 1);
        try {
            LearnerBatch batch = batches.deserialize(record.topic(), record.value());
            if (batch == null) {
                throw new RefusedException(RefusalReason.UNREADABLE, "", "the record has no value");
            }
            return switch (sequence.placeOf(batch)) {
                case KNOWN -> {
                    LOG.debug("skips batch {} at offset {}: it was consumed", batch.getBatchId(), record.offset());
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
            if (isNew) { // the dead letter of what was read before went with the offset behind it
                letters.add(letter(record, RefusalReason.UNREADABLE, "", String.valueOf(e.getMessage())));
            }
        } catch (RefusedException e) {
            if (isNew) {
                letters.add(letter(
                        record,
                        e.refusal().reason(),
                        e.refusal().field(),
                        e.refusal().message()));
            }
            alarms.raise(
                    FOREIGN,
                    partition.toString(),
                    "the record at " + partition + "@" + record.offset() + " is not a batch of this run: "
                            + e.refusal().message()
                            + "; a process other than the run's topology writes to this topic",
                    "stop that writer; the record goes to "
                            + connection.topics().deadLetters() + ", and no record of the run is lost");
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

    /** A record's dead letter, which goes with the next commit. */
    private ProducerRecord<byte[], byte[]> letter(
            ConsumerRecord<byte[], byte[]> record, RefusalReason reason, String field, String why) {
        RefusedException refused = new RefusedException(reason, field, why);
        LOG.warn(
                "refused {}-{}@{}, dead letter follows with the next version: {}",
                record.topic(),
                record.partition(),
                record.offset(),
                refused.getMessage());
        return DeadLetters.of(
                record, refused.refusal(), connection.run(), connection.topics().deadLetters());
    }

    private IncomingBatch incoming(LearnerBatch batch, ConsumerRecord<byte[], byte[]> record) {
        BatchProgress after = new BatchProgress(
                batch.getBatchId(),
                progress.rolloutsConsumed() + batch.getEntries().size());
        OffsetAndMetadata behind = new OffsetAndMetadata(
                readBefore, readBefore == record.offset() + 1 ? record.leaderEpoch() : Optional.empty(), "");
        List<ProducerRecord<byte[], byte[]>> with = new ArrayList<>(letters);
        for (ConsumerRecord<byte[], byte[]> other : unusable.all()) {
            with.add(letter(
                    other,
                    RefusalReason.MISFIT,
                    "entries",
                    "it cannot be trained on, and another batch " + batch.getBatchId() + " was"));
        }
        for (ConsumerRecord<byte[], byte[]> misplaced : ahead.misplacedBy(record.offset())) {
            with.add(letter(
                    misplaced,
                    RefusalReason.IDENTITY,
                    "batch_id",
                    "it is out of order: it precedes batches with a lower id, such as batch " + batch.getBatchId()));
        }
        return new IncomingBatch(batch, partition, behind, after, with);
    }

    /**
     * Sets aside the last returned batch, which cannot be trained on. It is retried at intervals, unless another batch with its
     * id arrives.
     */
    public void setAside() {
        if (current != null) {
            unusable.add(current);
            current = null;
        }
    }

    /** Records that the batch and the refusals before it are committed. */
    public void trained(IncomingBatch batch) {
        sequence.consumed(batch.batch().getBatchId());
        progress = batch.progress();
        letters.clear();
        trajectories.add(batch.batch());
        alarms.lower(TAIL_LOST, partition.toString()); // the due batch arrived
        alarms.lower(REMOVED, partition.toString());
        alarms.lower(TAIL_LOST, trainingLog);
        unusable.clear();
        if (current != null) {
            ahead.consumed(current.offset());
        }
        isSearched &= !ahead.ids().isEmpty();
        current = null;
    }

    /** First offset of the epoch that the log still holds. */
    private long begin() {
        return Math.max(
                log.begin(partition, limit), connection.lineage().beginning(partition.topic(), partition.partition()));
    }

    /** Seeks a position at or before the due batch. */
    private void seekDue(long begin) {
        long end = log.end(partition, limit);
        long from = readBefore;
        if (from > end) {
            alarms.raise(
                    TAIL_LOST,
                    partition.toString(),
                    partition + " ends at offset " + end + ", but was read up to offset " + readBefore
                            + ": its last " + (readBefore - end) + " offsets are lost; batch " + due()
                            + " is due",
                    "it clears with that batch; if it does not come, " + connection.command("repair"));
            from = end;
            readBefore = end;
        } else if (from < begin) {
            LOG.warn(
                    "{} begins at offset {} and was read up to offset {}: the topic's retention"
                            + " (topics.record_retention_ms) deleted the offsets between",
                    partition,
                    begin,
                    from);
            if (begin - from > 1) { // more than a transaction marker
                alarms.raise(
                        REMOVED,
                        partition.toString(),
                        partition + " begins at offset " + begin + ", and was read up to offset " + from
                                + ": retention (topics.record_retention_ms) deleted the offsets between"
                                + " unread; batch " + due() + " is due",
                        "it clears with that batch; if it does not come, " + connection.command("repair"));
            }
            from = begin;
        }
        log.consumer().seek(partition, lookedBack(from, begin));
    }

    /** Steps back from {@code from} until a batch up to the due one is found. */
    private long lookedBack(long from, long begin) {
        long start = from;
        for (long back = FIRST_LOOK_BACK; start > begin; back *= 4) {
            start = Math.max(begin, from - back);
            Optional<Long> first = firstBatch(start, from);
            if (first.isPresent() && first.get() <= sequence.next()) {
                return start;
            }
        }
        return start;
    }

    private Optional<Long> firstBatch(long start, long end) {
        log.consumer().seek(partition, start);
        List<Long> ids = new ArrayList<>();
        log.readUntil(
                () -> !ids.isEmpty() || log.position(partition) >= end,
                ReadLimit.withoutProgress(limit),
                record -> ours(record).ifPresent(batch -> ids.add(batch.getBatchId())));
        return ids.stream().findFirst();
    }

    private Optional<LearnerBatch> ours(ConsumerRecord<byte[], byte[]> record) {
        try {
            LearnerBatch batch = batches.deserialize(record.topic(), record.value());
            if (batch != null) {
                sequence.placeOf(batch);
                return Optional.of(batch);
            }
        } catch (MalformedRecordException | RefusedException e) {
            return Optional.empty(); // next() refuses it
        }
        return Optional.empty();
    }

    /** Ends the current or next {@link #poll}; from any thread. */
    public void wakeup() {
        log.wakeup();
    }

    @Override
    public void close() {
        log.close();
    }

    /**
     * Holds batches that arrived before an earlier batch, such as one redriven from the dead letters.
     *
     * <p>A batch followed by more than {@value #MANY} batches with lower ids is misplaced. Holds at most {@value
     * #CAPACITY_BYTES} bytes; batches beyond are read again from the log when due. Not thread-safe.
     */
    static final class AheadBatches {
        private static final int MANY = 8;
        private static final long CAPACITY_BYTES = 64L << 20;

        private static final class Waiting {
            private final ConsumerRecord<byte[], byte[]> record;
            private int overtaken;

            private Waiting(ConsumerRecord<byte[], byte[]> record) {
                this.record = record;
            }
        }

        private final NavigableMap<Long, Waiting> byId = new TreeMap<>();
        private long bytes;
        private boolean forgot;

        /** Adds a waiting batch; the first one with an id stays. */
        void add(long batchId, ConsumerRecord<byte[], byte[]> record) {
            if (byId.containsKey(batchId)) {
                return;
            }
            byId.put(batchId, new Waiting(record));
            bytes += record.value().length;
            while (bytes > CAPACITY_BYTES && byId.size() > 1) {
                bytes -= byId.pollLastEntry().getValue().record.value().length;
                forgot = true;
            }
        }

        Optional<ConsumerRecord<byte[], byte[]>> take(long batchId) {
            Waiting found = byId.remove(batchId);
            if (found != null) {
                bytes -= found.record.value().length;
            }
            return Optional.ofNullable(found).map(waiting -> waiting.record);
        }

        /** Returns the batches that are misplaced once a batch at this offset is consumed. */
        List<ConsumerRecord<byte[], byte[]>> misplacedBy(long offset) {
            return byId.values().stream()
                    .filter(waiting -> waiting.record.offset() < offset && waiting.overtaken == MANY)
                    .map(waiting -> waiting.record)
                    .toList();
        }

        void consumed(long offset) {
            for (Iterator<Waiting> all = byId.values().iterator(); all.hasNext(); ) {
                Waiting waiting = all.next();
                if (waiting.record.offset() < offset && ++waiting.overtaken > MANY) {
                    bytes -= waiting.record.value().length;
                    all.remove();
                }
            }
        }

        /** Whether batches were evicted since the last call, so that the log must be searched. */
        boolean takeForgot() {
            boolean some = forgot;
            forgot = false;
            return some;
        }

        /** Ids of the held batches, lowest first. */
        List<Long> ids() {
            return List.copyOf(byId.keySet());
        }
    }

    /**
     * Order of a policy's batches: ids count from 0 without a gap, and each batch makes at most one version. Not thread-safe.
     */
    static final class BatchSequence {
        private final RunIdentity run;
        private long last;

        /** Place of a batch in the order. */
        enum Place {
            DUE,
            /** Consumed before, or a copy: skip it. */
            KNOWN,
            /** Earlier batches are missing: hold it. */
            AHEAD
        }

        /** @param lastConsumed id of the last consumed batch; -1 for none */
        BatchSequence(RunIdentity run, long lastConsumed) {
            this.run = run;
            this.last = lastConsumed;
        }

        /** @throws RefusedException if it belongs to another run, policy or epoch */
        Place placeOf(LearnerBatch batch) throws RefusedException {
            requireOurs(batch);
            long id = batch.getBatchId();
            return id <= last ? Place.KNOWN : id == last + 1 ? Place.DUE : Place.AHEAD;
        }

        void consumed(long batchId) {
            if (batchId != last + 1) {
                throw new IllegalStateException("batch " + batchId + " was trained on after batch " + last);
            }
            last = batchId;
        }

        long next() {
            return last + 1;
        }

        private void requireOurs(LearnerBatch batch) throws RefusedException {
            if (!run.runId().equals(batch.getRunId())) {
                throw new RefusedException(
                        RefusalReason.WRONG_RUN,
                        "run_id",
                        "run_id is " + batch.getRunId() + ", this learner trains " + run.runId());
            }
            if (batch.getEpoch() != run.epoch()) {
                throw new RefusedException(
                        RefusalReason.WRONG_EPOCH,
                        "epoch",
                        "epoch is " + batch.getEpoch() + ", this learner trains epoch " + run.epoch());
            }
            if (!run.policyId().equals(batch.getPolicyId())) {
                throw new RefusedException(
                        RefusalReason.IDENTITY,
                        "policy_id",
                        "policy_id is " + batch.getPolicyId() + ", this learner trains " + run.policyId());
            }
            if (batch.getBatchId() < 0) {
                throw new RefusedException(
                        RefusalReason.IDENTITY, "batch_id", "batch_id must be at least 0: " + batch.getBatchId());
            }
        }
    }

    /**
     * Trajectories of the last {@value #BATCHES} batches. A batch that repeats one of them is a copy under another id. Not
     * thread-safe.
     */
    static final class TrainedTrajectories {
        private static final int BATCHES = 256;

        /** Includes the rollout: after a lost tail another trajectory may have the same offset. */
        private record TrajectoryPlace(int partition, long offset, String rolloutId) {}

        private final Map<TrajectoryPlace, Long> batchOf = new HashMap<>();
        private final Deque<List<TrajectoryPlace>> byBatch = new ArrayDeque<>();

        /** @throws RefusedException naming the batch that already has one of its trajectories */
        void requireNew(LearnerBatch batch) throws RefusedException {
            for (BatchEntry entry : batch.getEntries()) {
                Long other = batchOf.get(place(entry));
                if (other != null && other != batch.getBatchId()) {
                    throw new RefusedException(
                            RefusalReason.IDENTITY,
                            "entries",
                            "the trajectory at partition " + entry.getPartition() + " offset " + entry.getOffset()
                                    + " was trained on in batch " + other);
                }
            }
        }

        void add(LearnerBatch batch) {
            List<TrajectoryPlace> places =
                    batch.getEntries().stream().map(TrainedTrajectories::place).toList();
            places.forEach(place -> batchOf.put(place, batch.getBatchId()));
            byBatch.add(places);
            if (byBatch.size() > BATCHES) {
                byBatch.remove().forEach(batchOf::remove);
            }
        }

        private static TrajectoryPlace place(BatchEntry entry) {
            return new TrajectoryPlace(entry.getPartition(), entry.getOffset(), entry.getRolloutId());
        }
    }

    /**
     * Records of the due batch that could not be trained on, such as for a missing trajectory. Retried at intervals until one is
     * trained on. Not thread-safe.
     */
    static final class UnusableBatches {
        private static final long RETRY_NANOS = 5_000_000_000L;

        private final LongSupplier nanoTime;
        private final List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        private long since;

        /** @param nanoTime as {@link System#nanoTime()} */
        UnusableBatches(LongSupplier nanoTime) {
            this.nanoTime = nanoTime;
        }

        void add(ConsumerRecord<byte[], byte[]> record) {
            records.add(record);
            since = nanoTime.getAsLong();
        }

        boolean isEmpty() {
            return records.isEmpty();
        }

        /** Removes and returns the next record to retry; empty if none is due. */
        Optional<ConsumerRecord<byte[], byte[]>> takeForRetry() {
            if (records.isEmpty() || nanoTime.getAsLong() - since <= RETRY_NANOS) {
                return Optional.empty();
            }
            since = nanoTime.getAsLong();
            return Optional.of(records.remove(0));
        }

        List<ConsumerRecord<byte[], byte[]>> all() {
            return records;
        }

        void clear() {
            records.clear();
        }
    }
}
