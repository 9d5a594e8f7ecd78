package dev.millrace.audit.trace;

import dev.millrace.log.deadletter.DeadLetterHeaders;
import java.util.Optional;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * A dead letter without its payload.
 *
 * @param partition of the letter on the dead-letter topic
 * @param offset its offset, which users use as its name
 * @param writtenAtMs when it was refused, Unix milliseconds
 * @param reason code of the reason
 * @param field the offending field; empty if it is the record as a whole
 * @param message the reason, in a sentence
 * @param sourceTopic topic it was read from
 * @param sourcePartition its partition
 * @param sourceOffset its offset
 * @param sourceTimestampMs when the record was written; -1 if unknown
 * @param runId run that the record names; empty if not known
 * @param epoch epoch that the record names; -1 if not known
 * @param rolloutId rollout of the record; empty if not known
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

    /** The letter that a record of the dead-letter topic is; empty if it is a mark, or was not written by Millrace. */
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

    /** Where the record was read from. */
    public String source() {
        return sourceTopic + "-" + sourcePartition + "@" + sourceOffset;
    }
}
