package dev.millrace.replay;

import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.registry.UnknownSchemaException;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.topology.state.SeenHeader;
import dev.millrace.topology.task.TaskOutput;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.jspecify.annotations.Nullable;

/**
 * Compares a recorded and a replayed record byte by byte: key, value, and headers except those about the reader. On a
 * difference, decodes both to name the field. Values of an older schema are compared under that schema. Thread-safe.
 */
final class RecordComparison {
    private static final int SHOWN = 200;
    /** Magic byte and schema id. */
    private static final int FRAME_BYTES = 5;

    record Where(String field, String recorded, String replayed) {}

    private final SchemaRegistry registry;
    private final Map<String, Class<? extends SpecificRecord>> types;

    RecordComparison(SchemaRegistry registry, Map<String, Class<? extends SpecificRecord>> types) {
        this.registry = registry;
        this.types = Map.copyOf(types);
    }

    /** Empty if equal. */
    Optional<Where> compare(ConsumerRecord<byte[], byte[]> recorded, TaskOutput replayed) {
        if (!recorded.topic().equals(replayed.topic())) {
            return Optional.of(new Where("topic", recorded.topic(), replayed.topic()));
        }
        if (!Arrays.equals(recorded.key(), replayed.key())) {
            return Optional.of(new Where("key", text(recorded.key()), text(replayed.key())));
        }
        if (!Arrays.equals(recorded.value(), replayed.value())) {
            Optional<Where> where = inValue(recorded, replayed.value());
            if (where.isPresent()) {
                return where;
            }
        }
        return inHeaders(headers(recorded.headers()), headers(replayed.headers()));
    }

    private Optional<Where> inValue(ConsumerRecord<byte[], byte[]> recorded, byte @Nullable [] replayed) {
        Class<? extends SpecificRecord> type = types.get(recorded.topic());
        byte[] value = recorded.value();
        if (type != null && value != null && replayed != null) {
            if (value.length >= FRAME_BYTES && !Arrays.equals(value, 0, FRAME_BYTES, replayed, 0, FRAME_BYTES)) {
                return inOlderForm(value, replayed);
            }
            try {
                var deserializer = AvroSerde.of(type, registry).deserializer();
                Where where = within(
                        deserializer.deserialize(recorded.topic(), value),
                        deserializer.deserialize(recorded.topic(), replayed),
                        "");
                if (where != null) {
                    return Optional.of(where);
                }
            } catch (MalformedRecordException e) {
                return Optional.of(new Where("value", "not a " + type.getSimpleName(), "a " + type.getSimpleName()));
            }
        }
        int at = value == null || replayed == null ? 0 : Arrays.mismatch(value, replayed);
        return Optional.of(new Where(
                "value, byte " + at,
                value == null ? "nothing" : value.length + " bytes",
                replayed == null ? "nothing" : replayed.length + " other bytes"));
    }

    /** Compares under the recorded schema; empty if equal. */
    private Optional<Where> inOlderForm(byte[] recorded, byte[] replayed) {
        try {
            Schema older = registry.byId(ByteBuffer.wrap(recorded).getInt(1));
            return Optional.ofNullable(within(decoded(recorded, older), decoded(replayed, older), ""));
        } catch (IOException | AvroRuntimeException | UnknownSchemaException e) {
            return Optional.of(new Where(
                    "schema id",
                    hex(Arrays.copyOf(recorded, FRAME_BYTES)),
                    hex(Arrays.copyOf(replayed, FRAME_BYTES)) + ", and they cannot be compared: " + e.getMessage()));
        }
    }

    private GenericRecord decoded(byte[] value, Schema as) throws IOException {
        Schema written = registry.byId(ByteBuffer.wrap(value).getInt(1));
        BinaryDecoder decoder =
                DecoderFactory.get().binaryDecoder(value, FRAME_BYTES, value.length - FRAME_BYTES, null);
        GenericRecord record = new GenericDatumReader<GenericRecord>(written, as).read(null, decoder);
        if (!decoder.isEnd()) {
            throw new AvroRuntimeException("bytes follow the record");
        }
        return record;
    }

    /** First differing field; null if equal. */
    private static @Nullable Where within(@Nullable Object recorded, @Nullable Object replayed, String path) {
        if (recorded instanceof IndexedRecord a && replayed instanceof IndexedRecord b) {
            for (Schema.Field field : a.getSchema().getFields()) {
                Where where = within(
                        a.get(field.pos()),
                        b.get(field.pos()),
                        path.isEmpty() ? field.name() : path + "." + field.name());
                if (where != null) {
                    return where;
                }
            }
            return null;
        }
        if (recorded instanceof List<?> a && replayed instanceof List<?> b) {
            for (int i = 0; i < Math.min(a.size(), b.size()); i++) {
                Where where = within(a.get(i), b.get(i), path + "[" + i + "]");
                if (where != null) {
                    return where;
                }
            }
            return a.size() == b.size() ? null : new Where(path, a.size() + " of them", b.size() + " of them");
        }
        if (recorded instanceof ByteBuffer a && replayed instanceof ByteBuffer b) {
            int at = a.mismatch(b);
            return at < 0 ? null : new Where(path + ", byte " + at, hex(bytes(a)), hex(bytes(b)));
        }
        return Objects.equals(recorded, replayed) ? null : new Where(path, shown(recorded), shown(replayed));
    }

    private static Optional<Where> inHeaders(List<Header> recorded, List<Header> replayed) {
        for (int i = 0; i < Math.max(recorded.size(), replayed.size()); i++) {
            Header a = i < recorded.size() ? recorded.get(i) : null;
            Header b = i < replayed.size() ? replayed.get(i) : null;
            if (a == null || !a.equals(b)) {
                return Optional.of(new Where(
                        "header " + Objects.requireNonNull(a == null ? b : a).key(),
                        a == null ? "no such header" : text(a.value()),
                        b == null ? "no such header" : text(b.value())));
            }
        }
        return Optional.empty();
    }

    private static List<Header> headers(Headers all) {
        List<Header> compared = new ArrayList<>();
        for (Header header : all) {
            if (!header.key().equals(SeenHeader.HEADER) && !header.key().equals(DeadLetterHeaders.SENDER_RECORDS)) {
                compared.add(new org.apache.kafka.common.header.internals.RecordHeader(header.key(), header.value()));
            }
        }
        return compared;
    }

    private static byte[] bytes(ByteBuffer of) {
        byte[] bytes = new byte[of.remaining()];
        of.duplicate().get(bytes);
        return bytes;
    }

    private static String text(byte @Nullable [] bytes) {
        return bytes == null ? "nothing" : shown(new String(bytes, StandardCharsets.UTF_8));
    }

    private static String hex(byte[] bytes) {
        return shown(HexFormat.of().formatHex(bytes));
    }

    private static String shown(@Nullable Object value) {
        String text = String.valueOf(value);
        return text.length() <= SHOWN ? text : text.substring(0, SHOWN) + "...";
    }
}
