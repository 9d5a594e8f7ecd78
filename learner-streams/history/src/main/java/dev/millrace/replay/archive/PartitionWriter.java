package dev.millrace.replay.archive;

import dev.millrace.replay.archive.ArchiveIndex.PartitionFile;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.avro.file.CodecFactory;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.commons.codec.digest.DigestUtils;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** Writes a partition as compressed, hashed Avro container. Confined to one thread. */
final class PartitionWriter implements AutoCloseable {
    private static final int ZSTD_LEVEL = 3;
    private static final int BLOCK_BYTES = 1 << 20;

    private final Path file;
    private final String topic;
    private final int partition;
    private final MessageDigest digest = DigestUtils.getSha256Digest();
    private final DataFileWriter<GenericRecord> writer;
    private final List<long[]> blocks = new ArrayList<>();
    private long blockBytes = BLOCK_BYTES;
    private long records;

    /** @param topic without prefix */
    PartitionWriter(Path folder, String topic, TopicPartition of) throws IOException {
        this.file = folder.resolve(PartitionFile.name(topic, of.partition()));
        this.topic = topic;
        this.partition = of.partition();
        OutputStream out = new DigestOutputStream(Files.newOutputStream(file), digest);
        writer = new DataFileWriter<>(new GenericDatumWriter<GenericRecord>(ArchivedRecord.SCHEMA));
        writer.setCodec(CodecFactory.zstandardCodec(ZSTD_LEVEL));
        writer.setSyncInterval(2 * BLOCK_BYTES); // ends blocks here, so that their positions are known
        writer.setMeta("millrace.topic", of.topic());
        writer.setMeta("millrace.partition", of.partition());
        writer.create(ArchivedRecord.SCHEMA, out);
    }

    void write(ConsumerRecord<byte[], byte[]> record) throws IOException {
        if (blockBytes >= BLOCK_BYTES) {
            blocks.add(new long[] {record.offset(), writer.sync()});
            blockBytes = 0;
        }
        writer.append(ArchivedRecord.of(record));
        blockBytes += (record.value() == null ? 0 : record.value().length) + 64;
        records++;
    }

    PartitionFile end(RecordedRun.Range range) throws IOException {
        writer.close();
        return new PartitionFile(
                file.getFileName().toString(),
                topic,
                partition,
                range.from(),
                range.end(),
                records,
                HexFormat.of().formatHex(digest.digest()),
                List.copyOf(blocks));
    }

    @Override
    public void close() throws IOException {
        writer.close();
    }
}
