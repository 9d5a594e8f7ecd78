package dev.millrace.learner.batch;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Where on the log the due batch is looked for, and up to where everything was read.
 *
 * <p>Where the log has lost records, an alarm says so, and the due batch is looked for before the place that is lost. Used by one
 * thread.
 */
final class BatchCursor {
    private static final Logger LOG = LoggerFactory.getLogger(BatchCursor.class);
    private static final int FIRST_LOOK_BACK = 8;

    private final LogConnection connection;
    private final LogReader log;
    private final TopicPartition partition;
    private final Duration limit;
    private final BatchSequence sequence;
    private final Deserializer<LearnerBatch> batches;
    private final BatchAlarms alarms;
    /** Every record before this offset was read before, by this learner or an earlier one. */
    private long readBefore;

    /**
     * Goes to where the due batch is.
     *
     * @param log has the partition assigned
     * @param limit of every question to the log
     * @param committed offset, of which readers of this group have read everything before
     */
    BatchCursor(
            LogConnection connection,
            LogReader log,
            TopicPartition partition,
            Duration limit,
            BatchSequence sequence,
            Deserializer<LearnerBatch> batches,
            BatchAlarms alarms,
            Optional<OffsetAndMetadata> committed) {
        this.connection = connection;
        this.log = log;
        this.partition = partition;
        this.limit = limit;
        this.sequence = sequence;
        this.batches = batches;
        this.alarms = alarms;
        long begin = begin();
        this.readBefore = committed.map(OffsetAndMetadata::offset).orElse(begin);
        place(begin);
    }

    /** Goes to where the due batch is to be looked for: not behind the first batch that was not consumed. */
    void toDue() {
        place(begin());
    }

    /** Goes to where the epoch's batches begin. */
    void toBeginning() {
        log.consumer().seek(partition, begin());
    }

    /** What lies before it is gone, or of an older epoch. */
    private long begin() {
        return Math.max(
                log.begin(partition, limit), connection.lineage().beginning(partition.topic(), partition.partition()));
    }

    private void place(long begin) {
        long end = log.end(partition, limit);
        long from = readBefore;
        if (from > end) {
            alarms.tailLost(end, readBefore, sequence.next());
            from = end;
            readBefore = end;
        } else if (from < begin) {
            LOG.warn(
                    "{} begins at offset {}, behind offset {}, up to which it was read: what lay between was removed by the"
                            + " topic's retention (topics.record_retention_ms)",
                    partition,
                    begin,
                    from);
            if (begin - from > 1) { // more than the marker behind the last batch
                alarms.removed(begin, from, sequence.next());
            }
            from = begin;
        }
        log.consumer().seek(partition, lookedBack(from, begin));
    }

    /** An offset from which on the due batch lies, if it lies before {@code from} at all: that of a batch before it. */
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
            return Optional.empty(); // refused when it is its turn
        }
        return Optional.empty();
    }

    /** A record was read; false if it was read before, by this learner or an earlier one. */
    boolean read(ConsumerRecord<byte[], byte[]> record) {
        boolean isNew = record.offset() >= readBefore;
        readBefore = Math.max(readBefore, record.offset() + 1);
        return isNew;
    }

    /** The offset to commit with a batch: behind everything that was read. */
    OffsetAndMetadata behind(ConsumerRecord<byte[], byte[]> batch) {
        return new OffsetAndMetadata(
                readBefore, readBefore == batch.offset() + 1 ? batch.leaderEpoch() : Optional.empty(), "");
    }
}
