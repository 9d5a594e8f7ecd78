package dev.millrace.topology.state;

import java.nio.charset.StandardCharsets;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.streams.processor.TimestampExtractor;

/**
 * When what a record tells of happened, apart from when the record was written.
 *
 * <p>Decisions go by the first, so that they are the same when old topics are read again. The log deletes by the
 * second, so what is written today must be dated today: a trajectory dated like the old rollout it was made of would
 * be deleted before the learner has seen it. Records of the topology therefore carry the first as a header.
 *
 * <p>A record without the header happened when it was written; one without any time happened at its partition's time
 * so far, where the engine's own extractor would stop the topology.
 */
public final class RecordTimestampExtractor implements TimestampExtractor {
    private static final String HEADER = "millrace.event-ms";
    private static final int MAX_DIGITS = 18;

    /** The header that says when it happened. */
    public static Headers header(long eventMs) {
        return new RecordHeaders().add(HEADER, Long.toString(eventMs).getBytes(StandardCharsets.US_ASCII));
    }

    /** When what a record tells of happened, Unix milliseconds. */
    public static long of(ConsumerRecord<?, ?> record, long partitionTimeMs) {
        Header header = record.headers().lastHeader(HEADER);
        long named = header == null ? -1 : decimal(header.value());
        if (named >= 0) {
            return named;
        }
        return record.timestamp() >= 0 ? record.timestamp() : Math.max(0, partitionTimeMs);
    }

    @Override
    public long extract(ConsumerRecord<Object, Object> record, long partitionTime) {
        return of(record, partitionTime);
    }

    /** The number in the header; -1 if it is none, as in a header that somebody else wrote. */
    private static long decimal(byte[] digits) {
        if (digits == null || digits.length == 0 || digits.length > MAX_DIGITS) {
            return -1;
        }
        long value = 0;
        for (byte digit : digits) {
            if (digit < '0' || digit > '9') {
                return -1;
            }
            value = 10 * value + digit - '0';
        }
        return value;
    }
}
