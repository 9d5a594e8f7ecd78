package dev.millrace.view.follow;

import dev.millrace.replay.archive.SeekingCursor;
import java.util.Collections;
import java.util.Iterator;
import java.util.Objects;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Utils;
import org.jspecify.annotations.Nullable;

/** Reads committed records of a partition's files, from one offset on to where they end. */
final class FilesCursor implements SeekingCursor {
    private final TopicPartition partition;
    private final PartitionFiles files;
    private long from;
    private int segment;
    private Segment.@Nullable Batches batches;
    private @Nullable FileChannelRecordBatch batch;
    private Iterator<Record> records = Collections.emptyIterator();

    FilesCursor(TopicPartition partition, PartitionFiles files, long from) {
        this.partition = partition;
        this.files = files;
        seek(from);
    }

    @Override
    public void seek(long offset) {
        close();
        from = Math.max(offset, files.range().from());
        records = Collections.emptyIterator();
        PartitionFiles.Place place = files.before(from);
        segment = place.segment();
        if (segment < files.segments().size()) {
            batches = files.segments().get(segment).open(place.position());
        }
    }

    @Override
    public Optional<ConsumerRecord<byte[], byte[]>> next() {
        while (true) {
            while (records.hasNext()) {
                Record record = records.next();
                if (record.offset() >= files.range().end()) {
                    return Optional.empty();
                }
                if (record.offset() >= from) {
                    return Optional.of(consumed(record));
                }
            }
            if (!nextBatch()) {
                return Optional.empty();
            }
        }
    }

    private boolean nextBatch() {
        while (batches != null) {
            if (!batches.hasNext()) {
                batches.close();
                segment++;
                batches = segment < files.segments().size()
                        ? files.segments().get(segment).open(0)
                        : null;
                continue;
            }
            FileChannelRecordBatch read = batches.next();
            if (read.baseOffset() >= files.range().end()) {
                return false;
            }
            if (read.lastOffset() >= from && files.isCommitted(read)) {
                batch = read;
                records = read.iterator();
                return true;
            }
        }
        return false;
    }

    private ConsumerRecord<byte[], byte[]> consumed(Record record) {
        FileChannelRecordBatch of = Objects.requireNonNull(batch);
        byte[] key = Utils.toNullableArray(record.key());
        byte[] value = Utils.toNullableArray(record.value());
        return new ConsumerRecord<>(
                partition.topic(),
                partition.partition(),
                record.offset(),
                record.timestamp(),
                of.timestampType(),
                key == null ? ConsumerRecord.NULL_SIZE : key.length,
                value == null ? ConsumerRecord.NULL_SIZE : value.length,
                key,
                value,
                new RecordHeaders(record.headers()),
                Optional.of(of.partitionLeaderEpoch()));
    }

    @Override
    public void close() {
        if (batches != null) {
            batches.close();
            batches = null;
        }
    }
}
