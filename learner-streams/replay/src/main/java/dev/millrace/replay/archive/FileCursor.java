package dev.millrace.replay.archive;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** Reads a partition's file from an offset on. Confined to one thread. */
final class FileCursor implements RecordCursor {
    private final Path file;
    private final TopicPartition partition;
    private final List<long[]> blocks;
    private final DataFileReader<GenericRecord> reader;
    private long from;

    /** @param blocks offsets and positions, ascending */
    FileCursor(Path file, TopicPartition partition, List<long[]> blocks, long from) {
        this.file = file;
        this.partition = partition;
        this.blocks = blocks;
        try {
            reader = new DataFileReader<>(file.toFile(), new GenericDatumReader<>());
        } catch (IOException e) {
            throw broken(e);
        }
        seek(from);
    }

    /** Goes to the first record at this offset or behind it. */
    void seek(long offset) {
        from = offset;
        long position = -1;
        for (long[] block : blocks) {
            if (block[0] > offset) {
                break;
            }
            position = block[1];
        }
        try {
            if (position >= 0) {
                reader.seek(position);
            } else if (!blocks.isEmpty()) {
                reader.seek(blocks.get(0)[1]);
            }
        } catch (IOException e) {
            throw broken(e);
        }
    }

    @Override
    public Optional<ConsumerRecord<byte[], byte[]>> next() {
        try {
            while (reader.hasNext()) {
                GenericRecord record = reader.next();
                if (ArchivedRecord.offset(record) >= from) {
                    return Optional.of(ArchivedRecord.toRecord(record, partition));
                }
            }
            return Optional.empty();
        } catch (AvroRuntimeException e) {
            throw broken(e);
        }
    }

    private ArchiveException broken(Exception e) {
        return new ArchiveException(
                "cannot read " + file + ": " + e.getMessage()
                        + "; 'millrace import --verify' says whether it is as it was exported",
                e);
    }

    @Override
    public void close() {
        try {
            reader.close();
        } catch (IOException e) {
            throw broken(e);
        }
    }
}
