package dev.millrace.log.deadletter;

import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.run.RunIdentity;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;

/**
 * Builds dead letters: the refused record unchanged (key, value, headers), with headers that give the reason. The role that
 * refuses a record writes its dead letter in the transaction of the record's offset.
 *
 * <p>The timestamp is the time of writing, since retention would delete an old record before anyone reads it. A header has the
 * record's own timestamp.
 *
 * <p>{@link DeadLetterHeaders} lists the headers; values are cut to {@value #MAX_HEADER_CHARS} characters. A redriven record that
 * is refused again carries only the newest set.
 */
public final class DeadLetters {
    static final int MAX_HEADER_CHARS = 1024;
    /** Largest size of a dead letter's headers, in addition to the record: thirteen, of four bytes a character. */
    public static final int MAX_HEADERS_BYTES = 64 << 10;

    private DeadLetters() {}

    /**
     * Where a record was read from.
     *
     * @param timestampMs when it was written, Unix milliseconds; -1 if it came without a time
     */
    public record Source(String topic, int partition, long offset, long timestampMs) {
        public static Source of(ConsumerRecord<?, ?> record) {
            return new Source(record.topic(), record.partition(), record.offset(), record.timestamp());
        }
    }

    /** The headers of the dead letter of a record that came with {@code original} headers. */
    public static Headers headers(Headers original, Source source, Refusal refusal, RunIdentity by) {
        Headers headers = new RecordHeaders();
        for (Header header : original) {
            if (!header.key().startsWith(DeadLetterHeaders.ERROR)) {
                headers.add(header);
            }
        }
        put(headers, DeadLetterHeaders.REASON, refusal.reason().code());
        put(headers, DeadLetterHeaders.FIELD, refusal.field());
        put(headers, DeadLetterHeaders.MESSAGE, refusal.message());
        put(headers, DeadLetterHeaders.SOURCE_TOPIC, source.topic());
        put(headers, DeadLetterHeaders.SOURCE_PARTITION, Integer.toString(source.partition()));
        put(headers, DeadLetterHeaders.SOURCE_OFFSET, Long.toString(source.offset()));
        put(headers, DeadLetterHeaders.SOURCE_TIMESTAMP, Long.toString(source.timestampMs()));
        put(headers, DeadLetterHeaders.RUN_ID, refusal.runId());
        put(headers, DeadLetterHeaders.EPOCH, refusal.epoch() < 0 ? "" : Integer.toString(refusal.epoch()));
        put(headers, DeadLetterHeaders.ROLLOUT_ID, refusal.rolloutId());
        put(
                headers,
                DeadLetterHeaders.SENDER_RECORDS,
                refusal.senderRecords() == 0 ? "" : Long.toString(refusal.senderRecords()));
        put(headers, DeadLetterHeaders.REFUSED_BY_RUN_ID, by.runId());
        put(headers, DeadLetterHeaders.REFUSED_BY_EPOCH, Integer.toString(by.epoch()));
        return headers;
    }

    /** The dead letter of a record that a consumer read, to be sent to {@code topic}. */
    public static ProducerRecord<byte[], byte[]> of(
            ConsumerRecord<byte[], byte[]> record, Refusal refusal, RunIdentity by, String topic) {
        return new ProducerRecord<>(
                topic,
                null,
                null,
                record.key(),
                record.value(),
                headers(record.headers(), Source.of(record), refusal, by));
    }

    private static void put(Headers headers, String name, String value) {
        if (!value.isEmpty()) {
            String cut = value.length() <= MAX_HEADER_CHARS ? value : value.substring(0, MAX_HEADER_CHARS);
            headers.add(name, cut.getBytes(StandardCharsets.UTF_8));
        }
    }
}
