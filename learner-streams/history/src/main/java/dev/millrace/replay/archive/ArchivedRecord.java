package dev.millrace.replay.archive;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.jspecify.annotations.Nullable;

/** Log record with its position, as stored in an archive. */
final class ArchivedRecord {
    static final Schema SCHEMA = new Schema.Parser().parse("""
        {"type": "record", "name": "ArchivedRecord", "namespace": "dev.millrace.archive",
         "doc": "A record of a Kafka partition as it was. The file's metadata say which topic and partition.",
         "fields": [
          {"name": "offset", "type": "long", "doc": "Where it lay."},
          {"name": "timestamp", "type": "long", "doc": "When it was written, Unix milliseconds."},
          {"name": "key", "type": ["null", "bytes"], "doc": "As it was."},
          {"name": "value", "type": ["null", "bytes"], "doc": "As it was: Confluent's wire format, whose schema ids are in index.json."},
          {"name": "headers", "type": {"type": "array", "items": {"type": "record", "name": "ArchivedHeader", "fields": [
            {"name": "key", "type": "string", "doc": "Name."},
            {"name": "value", "type": ["null", "bytes"], "doc": "As it was."}
          ]}}, "doc": "In order."}
         ]}""");
    private static final Schema HEADER = SCHEMA.getField("headers").schema().getElementType();
    private static final int OFFSET = 0;
    private static final int TIMESTAMP = 1;
    private static final int KEY = 2;
    private static final int VALUE = 3;
    private static final int HEADERS = 4;

    private ArchivedRecord() {}

    static GenericRecord of(ConsumerRecord<byte[], byte[]> record) {
        GenericRecord archived = new GenericData.Record(SCHEMA);
        archived.put(OFFSET, record.offset());
        archived.put(TIMESTAMP, record.timestamp());
        archived.put(KEY, wrapped(record.key()));
        archived.put(VALUE, wrapped(record.value()));
        List<GenericRecord> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            GenericRecord one = new GenericData.Record(HEADER);
            one.put(0, header.key());
            one.put(1, wrapped(header.value()));
            headers.add(one);
        }
        archived.put(HEADERS, headers);
        return archived;
    }

    static ConsumerRecord<byte[], byte[]> toRecord(GenericRecord archived, TopicPartition of) {
        Headers headers = new RecordHeaders();
        for (Object header : (List<?>) archived.get(HEADERS)) {
            GenericRecord one = (GenericRecord) header;
            headers.add(one.get(0).toString(), bytes(one.get(1)));
        }
        byte[] key = bytes(archived.get(KEY));
        byte[] value = bytes(archived.get(VALUE));
        return new ConsumerRecord<>(
                of.topic(),
                of.partition(),
                offset(archived),
                (long) archived.get(TIMESTAMP),
                TimestampType.CREATE_TIME,
                key == null ? -1 : key.length,
                value == null ? -1 : value.length,
                key,
                value,
                headers,
                Optional.empty());
    }

    static long offset(GenericRecord archived) {
        return (long) archived.get(OFFSET);
    }

    private static @Nullable ByteBuffer wrapped(byte @Nullable [] bytes) {
        return bytes == null ? null : ByteBuffer.wrap(bytes);
    }

    private static byte @Nullable [] bytes(@Nullable Object value) {
        if (value == null) {
            return null;
        }
        ByteBuffer buffer = (ByteBuffer) value;
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }
}
