package dev.millrace.log.deadletter;

import dev.millrace.schemas.refusal.Refusal;
import dev.millrace.schemas.refusal.RefusalReason;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;

/**
 * Makes dead letters: the record exactly as it came (key, value, headers) and headers that say why.
 *
 * <p>The letter is dated when it is written, because the log deletes by date: a refused record from long ago would
 * otherwise be gone before anybody saw it. Its own time is among the headers.
 *
 * <p>Header values are UTF-8 text, cut to {@value #MAX_HEADER_CHARS} characters. A record that was replayed from the
 * dead-letter topic and is refused again carries one set of our headers, the newest.
 */
public final class DeadLetters {
    static final int MAX_HEADER_CHARS = 1024;
    /** What the headers of a dead letter may take beside the record: nine of them, of four bytes a character. */
    public static final int MAX_HEADERS_BYTES = 64 << 10;

    static final String PREFIX = "millrace.error.";
    /** {@link RefusalReason#code()}. */
    public static final String REASON = PREFIX + "reason";
    /** {@link Refusal#field()}; absent if it is the record as a whole. */
    public static final String FIELD = PREFIX + "field";
    /** {@link Refusal#message()}. */
    public static final String MESSAGE = PREFIX + "message";
    /** Topic the record was read from. */
    public static final String SOURCE_TOPIC = PREFIX + "source.topic";
    /** Partition it was read from. */
    public static final String SOURCE_PARTITION = PREFIX + "source.partition";
    /** Offset it was read from. */
    public static final String SOURCE_OFFSET = PREFIX + "source.offset";
    /** When the record was written, Unix milliseconds. */
    public static final String SOURCE_TIMESTAMP = PREFIX + "source.timestamp";
    /** The run the record says it belongs to; absent if not known. */
    public static final String RUN_ID = PREFIX + "run-id";
    /** The rollout it is about; absent if not known. */
    public static final String ROLLOUT_ID = PREFIX + "rollout-id";

    private DeadLetters() {}

    /**
     * Where a record was read from.
     *
     * @param timestampMs when it was written, Unix milliseconds; -1 if it came without a time
     */
    public record Source(String topic, int partition, long offset, long timestampMs) {
        /** Where a consumer read it. */
        public static Source of(ConsumerRecord<?, ?> record) {
            return new Source(record.topic(), record.partition(), record.offset(), record.timestamp());
        }
    }

    /** The headers of the dead letter of a record that came with {@code original} headers. */
    public static Headers headers(Headers original, Source source, Refusal refusal) {
        Headers headers = new RecordHeaders();
        for (Header header : original) {
            if (!header.key().startsWith(PREFIX)) {
                headers.add(header);
            }
        }
        put(headers, REASON, refusal.reason().code());
        put(headers, FIELD, refusal.field());
        put(headers, MESSAGE, refusal.message());
        put(headers, SOURCE_TOPIC, source.topic());
        put(headers, SOURCE_PARTITION, Integer.toString(source.partition()));
        put(headers, SOURCE_OFFSET, Long.toString(source.offset()));
        put(headers, SOURCE_TIMESTAMP, Long.toString(source.timestampMs()));
        put(headers, RUN_ID, refusal.runId());
        put(headers, ROLLOUT_ID, refusal.rolloutId());
        return headers;
    }

    /** The dead letter of a record that a consumer read, to be sent to {@code topic}. */
    public static ProducerRecord<byte[], byte[]> of(
            ConsumerRecord<byte[], byte[]> record, Refusal refusal, String topic) {
        return new ProducerRecord<>(
                topic, null, null, record.key(), record.value(), headers(record.headers(), Source.of(record), refusal));
    }

    /** The text of one of these headers; empty if the record has none of that name. */
    public static String text(Headers headers, String name) {
        Header header = headers.lastHeader(name);
        return header == null ? "" : new String(header.value(), StandardCharsets.UTF_8);
    }

    private static void put(Headers headers, String name, String value) {
        if (!value.isEmpty()) {
            String cut = value.length() <= MAX_HEADER_CHARS ? value : value.substring(0, MAX_HEADER_CHARS);
            headers.add(name, cut.getBytes(StandardCharsets.UTF_8));
        }
    }
}
