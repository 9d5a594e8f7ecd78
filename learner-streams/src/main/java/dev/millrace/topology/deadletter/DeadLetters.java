package dev.millrace.topology.deadletter;

import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Makes dead letters: the record exactly as it came (key, value, headers, timestamp) and headers that say why.
 *
 * <p>Header values are UTF-8 text, cut to {@value #MAX_HEADER_CHARS} characters. A record that was replayed from the dead-letter topic and is refused again
 * carries one set of our headers, the newest.
 */
public final class DeadLetters {
    static final int MAX_HEADER_CHARS = 1024;
    /** What the headers of a dead letter may take beside the record: eight of them, of four bytes a character. */
    public static final int MAX_HEADERS_BYTES = 64 << 10;
    private static final String PREFIX = "millrace.error.";
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
    /** The run the record says it belongs to; absent if not known. */
    public static final String RUN_ID = PREFIX + "run-id";
    /** The rollout it is about; absent if not known. */
    public static final String ROLLOUT_ID = PREFIX + "rollout-id";

    private DeadLetters() {
    }

    /**
     * The dead letter of a record.
     *
     * @param record as it came
     * @param topic where it was read from
     */
    public static Record<byte[], byte[]> of(
        Record<byte[], byte[]> record, String topic, int partition, long offset, Refusal refusal) {
        Headers headers = new RecordHeaders();
        for (Header header : record.headers()) {
            if (!header.key().startsWith(PREFIX)) {
                headers.add(header);
            }
        }
        put(headers, REASON, refusal.reason().code());
        put(headers, FIELD, refusal.field());
        put(headers, MESSAGE, refusal.message());
        put(headers, SOURCE_TOPIC, topic);
        put(headers, SOURCE_PARTITION, Integer.toString(partition));
        put(headers, SOURCE_OFFSET, Long.toString(offset));
        put(headers, RUN_ID, refusal.runId());
        put(headers, ROLLOUT_ID, refusal.rolloutId());
        return record.withHeaders(headers);
    }

    private static void put(Headers headers, String name, String value) {
        if (!value.isEmpty()) {
            String cut = value.length() <= MAX_HEADER_CHARS ? value : value.substring(0, MAX_HEADER_CHARS);
            headers.add(name, cut.getBytes(StandardCharsets.UTF_8));
        }
    }
}
