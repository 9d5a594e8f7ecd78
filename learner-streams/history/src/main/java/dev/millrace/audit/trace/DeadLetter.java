package dev.millrace.audit.trace;

import dev.millrace.log.deadletter.DeadLetterHeaders;
import java.util.Optional;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * A dead letter without its payload.
 *
 * @param offset which names it for users
 * @param writtenAtMs Unix milliseconds
 * @param reason code
 * @param field offending field; empty for the whole record
 * @param message a sentence
 * @param sourceTimestampMs of the record; -1 if unknown
 * @param runId empty if unknown
 * @param epoch -1 if unknown
 * @param rolloutId empty if unknown
 */
public record DeadLetter(
        int partition,
        long offset,
        long writtenAtMs,
        String reason,
        String field,
        String message,
        String sourceTopic,
        int sourcePartition,
        long sourceOffset,
        long sourceTimestampMs,
        String runId,
        int epoch,
        String rolloutId) {

    private static final Pattern PARTITION = Pattern.compile("\\d{1,9}");
    private static final Pattern NUMBER = Pattern.compile("-?\\d{1,18}");

    /** Empty for marks and foreign records. */
    public static Optional<DeadLetter> of(ConsumerRecord<byte[], byte[]> record) {
        String partition = text(record, DeadLetterHeaders.SOURCE_PARTITION);
        String offset = text(record, DeadLetterHeaders.SOURCE_OFFSET);
        String timestamp = text(record, DeadLetterHeaders.SOURCE_TIMESTAMP);
        if (record.headers().lastHeader(DeadLetterHeaders.REASON) == null
                || !matches(PARTITION, partition)
                || !matches(NUMBER, offset)
                || !matches(NUMBER, timestamp)) {
            return Optional.empty();
        }
        return Optional.of(new DeadLetter(
                record.partition(),
                record.offset(),
                record.timestamp(),
                text(record, DeadLetterHeaders.REASON),
                text(record, DeadLetterHeaders.FIELD),
                text(record, DeadLetterHeaders.MESSAGE),
                text(record, DeadLetterHeaders.SOURCE_TOPIC),
                Integer.parseInt(partition),
                Long.parseLong(offset),
                Long.parseLong(timestamp),
                text(record, DeadLetterHeaders.RUN_ID),
                DeadLetterHeaders.epoch(record.headers(), DeadLetterHeaders.EPOCH),
                text(record, DeadLetterHeaders.ROLLOUT_ID)));
    }

    private static String text(ConsumerRecord<byte[], byte[]> record, String header) {
        return DeadLetterHeaders.text(record.headers(), header);
    }

    private static boolean matches(Pattern pattern, String text) {
        return pattern.matcher(text).matches();
    }

    public String source() {
        return sourceTopic + "-" + sourcePartition + "@" + sourceOffset;
    }
}
