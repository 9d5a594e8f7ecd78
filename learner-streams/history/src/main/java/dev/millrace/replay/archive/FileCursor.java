package dev.millrace.replay.archive;

import dev.millrace.replay.archive.ArchiveIndex.PartitionFile;
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
final class FileCursor implements SeekingCursor {
    private final Path file;
    private final TopicPartition partition;
    private final PartitionFile index;
    private final DataFileReader<GenericRecord> reader;
    private long from;
    private long last;
    /** Of the record that is read next, if that is the first of a block that the index names; -1 if not. */
    private long due = -1;

    /** @param index what the index says of the file */
    FileCursor(Path file, TopicPartition partition, PartitionFile index, long from) {
        this.file = file;
        this.partition = partition;
        this.index = index;
        this.last = index.from() - 1;
        try {
            reader = new DataFileReader<>(file.toFile(), new GenericDatumReader<>());
        } catch (IOException | AvroRuntimeException e) {
            throw broken(e);
        }
        if (!reader.getSchema().equals(ArchivedRecord.SCHEMA)) {
            close();
            throw broken(new IOException("its records are not those of an archive"));
        }
        seek(from);
    }

    @Override
    public void seek(long offset) {
        from = offset;
        last = index.from() - 1;
        List<long[]> blocks = index.blocks();
        if (blocks.isEmpty()) {
            return;
        }
        long[] at = blocks.get(0);
        for (long[] block : blocks) {
            if (block[0] > offset) {
                break;
            }
            at = block;
        }
        try {
            reader.seek(at[1]);
        } catch (IOException e) {
            throw broken(e);
        }
        due = at[0];
    }

    @Override
    public Optional<ConsumerRecord<byte[], byte[]>> next() {
        try {
            while (reader.hasNext()) {
                GenericRecord record = reader.next();
                long offset = ArchivedRecord.offset(record);
                if (offset <= last || offset >= index.end()) {
                    throw broken(new IOException("a record of offset " + offset + " follows one of " + last
                            + ", and offsets ascend, from " + index.from() + " to " + (index.end() - 1)));
                }
                if (due >= 0 && offset != due) {
                    throw broken(new IOException("the index says that a block begins with offset " + due
                            + ", and it begins with " + offset));
                }
                due = -1;
                last = offset;
                if (offset >= from) {
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
