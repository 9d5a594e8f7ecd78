package dev.millrace.generator.sampling;

import java.nio.charset.StandardCharsets;
import java.util.Locale;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;

/**
 * A prompt that cannot be served, and why.
 *
 * @param record as it was read
 * @param reason from the closed list that is counted by
 * @param field the offending field as the schema names it; empty if it is the record as a whole
 * @param message one sentence
 * @param runId the run the record says it belongs to; empty if not known
 */
record RefusedPrompt(ConsumerRecord<byte[], byte[]> record, Reason reason, String field, String message, String runId)
        implements PromptReading {
    private static final String PREFIX = "millrace.error.";

    /** Why, as it stands in the header and in the meter: the constant's name in lower case with dashes. */
    enum Reason {
        /** The bytes are not a PromptRequest. */
        UNREADABLE,
        /** It belongs to another run. */
        WRONG_RUN,
        /** It belongs to another epoch of this run. */
        WRONG_EPOCH,
        /** Its key is not its group id, so that its rollouts would lie in another partition than it says. */
        WRONG_KEY,
        /** Its token ids belong to another vocabulary. */
        WRONG_TOKENIZER,
        /** A token id outside the vocabulary, or no tokens. */
        TOKENS,
        /** Group id, ordinal or number of samples that cannot be. */
        IDENTITY,
        /** Sampling parameters out of range. */
        SAMPLING,
        /** Prompt and response do not fit a slot. */
        CAPACITY,
        /** The environment is not known, or cannot read its state. */
        ENVIRONMENT;

        String code() {
            return name().toLowerCase(Locale.ROOT).replace('_', '-');
        }
    }

    /** The record as it came, with headers that say why. */
    ProducerRecord<byte[], byte[]> deadLetter(String topic) {
        Long timestamp = record.timestamp() < 0 ? null : record.timestamp(); // -1: it came without one
        ProducerRecord<byte[], byte[]> letter =
                new ProducerRecord<>(topic, null, timestamp, record.key(), record.value());
        for (Header header : record.headers()) {
            if (!header.key().startsWith(PREFIX)) {
                letter.headers().add(header);
            }
        }
        put(letter.headers(), "reason", reason.code());
        put(letter.headers(), "field", field);
        put(letter.headers(), "message", message);
        put(letter.headers(), "source.topic", record.topic());
        put(letter.headers(), "source.partition", Integer.toString(record.partition()));
        put(letter.headers(), "source.offset", Long.toString(record.offset()));
        put(letter.headers(), "run-id", runId);
        return letter;
    }

    private static void put(Headers headers, String name, String value) {
        if (!value.isEmpty()) {
            headers.add(PREFIX + name, value.getBytes(StandardCharsets.UTF_8));
        }
    }
}
