package dev.millrace.log.deadletter;

import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;

/**
 * The names of all headers that Millrace writes on the dead-letter topic, and on a record that went back from it.
 *
 * <p>Values are UTF-8 text; numbers are decimal. A header that has nothing to say is absent.
 */
public final class DeadLetterHeaders {
    static final String ERROR = "millrace.error.";
    /** {@link RefusalReason#code()}. */
    public static final String REASON = ERROR + "reason";
    /** {@link Refusal#field()}; absent if it is the record as a whole. */
    public static final String FIELD = ERROR + "field";
    /** {@link Refusal#message()}. */
    public static final String MESSAGE = ERROR + "message";

    public static final String SOURCE_TOPIC = ERROR + "source.topic";
    public static final String SOURCE_PARTITION = ERROR + "source.partition";
    public static final String SOURCE_OFFSET = ERROR + "source.offset";
    /** When the record was written, Unix milliseconds. */
    public static final String SOURCE_TIMESTAMP = ERROR + "source.timestamp";
    /** The run the record says it belongs to; absent if not known. */
    public static final String RUN_ID = ERROR + "run-id";
    /** The epoch the record says it belongs to; absent if not known. */
    public static final String EPOCH = ERROR + "epoch";
    /** The rollout it is about; absent if not known. */
    public static final String ROLLOUT_ID = ERROR + "rollout-id";
    /**
     * How many records of its generator were read since the last one that was refused, this one included; absent where the
     * generator is not blamed. Counted by the refusing process since its start: the only header that may differ in a repetition.
     */
    public static final String SENDER_RECORDS = ERROR + "sender.records";
    /** The run that refused it, also where the record could not be read. */
    public static final String REFUSED_BY_RUN_ID = ERROR + "refused-by.run-id";

    public static final String REFUSED_BY_EPOCH = ERROR + "refused-by.epoch";

    static final String REDRIVE = "millrace.redrive.";
    /** On a mark and on the record that was redriven: which dead letter it was, {@code partition@offset}. */
    public static final String REDRIVEN_FROM = REDRIVE + "dead-letter";
    /** On a mark: offset at which the record lies since. */
    public static final String REDRIVEN_TO_OFFSET = REDRIVE + "new-offset";
    /** On a mark: how many samples of a group the dead letter stood for. */
    public static final String REDRIVEN_SAMPLES = REDRIVE + "samples";
    /** On a mark: where the rollout lies that the dead letter was about, {@code partition@offset}. */
    public static final String REDRIVEN_ROLLOUT = REDRIVE + "rollout";

    private DeadLetterHeaders() {}

    /** The text of one of these headers; empty if the record has none of that name. */
    public static String text(Headers headers, String name) {
        Header header = headers.lastHeader(name);
        return header == null || header.value() == null ? "" : new String(header.value(), StandardCharsets.UTF_8);
    }

    /** The epoch that a header of these names; -1 if it is absent or no number. */
    public static int epoch(Headers headers, String name) {
        String text = text(headers, name);
        return text.matches("\\d{1,9}") ? Integer.parseInt(text) : -1;
    }
}
