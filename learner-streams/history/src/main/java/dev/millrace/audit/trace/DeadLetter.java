package dev.millrace.audit.trace;

import dev.millrace.log.deadletter.DeadLetterHeaders;
import java.util.Optional;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Headers;

/**
 * A dead letter without its payload.
 *
 * @param writtenAtMs Unix milliseconds
 */
public record DeadLetter(int partition, long offset, long writtenAtMs, Headers headers) {

    private static final Pattern PARTITION = Pattern.compile("\\d{1,9}");
    private static final Pattern NUMBER = Pattern.compile("-?\\d{1,18}");

    /** Empty for marks and foreign records. */
    public static Optional<DeadLetter> of(ConsumerRecord<byte[], byte[]> record) {
        DeadLetter letter = new DeadLetter(record.partition(), record.offset(), record.timestamp(), record.headers());
        return record.headers().lastHeader(DeadLetterHeaders.REASON) == null
                        || !matches(PARTITION, letter.text(DeadLetterHeaders.SOURCE_PARTITION))
                        || !matches(NUMBER, letter.text(DeadLetterHeaders.SOURCE_OFFSET))
                        || !matches(NUMBER, letter.text(DeadLetterHeaders.SOURCE_TIMESTAMP))
                ? Optional.empty()
                : Optional.of(letter);
    }

    private String text(String header) {
        return DeadLetterHeaders.text(headers, header);
    }

    private static boolean matches(Pattern pattern, String text) {
        return pattern.matcher(text).matches();
    }

    public String reason() {
        return text(DeadLetterHeaders.REASON);
    }

    /** Offending field; empty for the whole record. */
    public String field() {
        return text(DeadLetterHeaders.FIELD);
    }

    public String message() {
        return text(DeadLetterHeaders.MESSAGE);
    }

    public String source() {
        return sourceTopic() + "-" + sourcePartition() + "@" + sourceOffset();
    }

    public String sourceTopic() {
        return text(DeadLetterHeaders.SOURCE_TOPIC);
    }

    public int sourcePartition() {
        return Integer.parseInt(text(DeadLetterHeaders.SOURCE_PARTITION));
    }

    public long sourceOffset() {
        return Long.parseLong(text(DeadLetterHeaders.SOURCE_OFFSET));
    }

    /** Time of the refused record; -1 if unknown. */
    public long sourceTimestampMs() {
        return Long.parseLong(text(DeadLetterHeaders.SOURCE_TIMESTAMP));
    }

    /** Empty if unknown. */
    public String runId() {
        return text(DeadLetterHeaders.RUN_ID);
    }

    /** -1 if unknown. */
    public int epoch() {
        return DeadLetterHeaders.epoch(headers, DeadLetterHeaders.EPOCH);
    }

    /** Empty if unknown. */
    public String rolloutId() {
        return text(DeadLetterHeaders.ROLLOUT_ID);
    }
}
