package dev.millrace.log.deadletter;

import dev.millrace.schemas.LogCoordinates;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;

/**
 * Says on the dead-letter topic that one of its letters was redriven on the topic it came from.
 *
 * <p>The mark and the record that is redriven are written in one transaction, so that a letter is redriven once or not
 * at all. A mark has no value and no reason; it repeats the letter's source and run, so that a reader who follows the
 * topic can take back what it had counted for the letter without looking for it. The record redriven carries
 * {@link DeadLetterHeaders#REDRIVEN_FROM} too.
 *
 * @param source where the refused record lies; it was redriven to the same partition
 * @param samples how many samples of a group the letter stood for: one for a rollout, a group for a prompt, else 0
 * @param rolloutPlace where the rollout's record lies that the letter was about, {@code partition@offset}, where the
 *     letter is not that record itself but a trajectory of it; else empty
 */
public record RedriveMark(
        int letterPartition,
        long letterOffset,
        LogCoordinates source,
        long newOffset,
        long samples,
        String rolloutPlace,
        Subject subject) {

    /**
     * Of what a letter is.
     *
     * @param rolloutId may be empty
     * @param runId may be empty
     * @param epoch -1 if it has none
     */
    public record Subject(String rolloutId, String runId, int epoch) {}

    private static final Pattern PLACE = Pattern.compile("(\\d{1,9})@(\\d{1,18})");
    private static final Pattern NUMBER = Pattern.compile("\\d{1,18}");

    public static String place(Object partition, Object offset) {
        return partition + "@" + offset;
    }

    /** The headers of the record that is redriven: its own, without those that made it a letter, and which letter it was. */
    public static Headers headers(Headers letter, int letterPartition, long letterOffset) {
        Headers headers = new RecordHeaders();
        for (Header header : letter) {
            if (!header.key().startsWith(DeadLetterHeaders.ERROR)
                    && !header.key().startsWith(DeadLetterHeaders.REDRIVE)) {
                headers.add(header);
            }
        }
        put(headers, DeadLetterHeaders.REDRIVEN_FROM, place(letterPartition, letterOffset));
        return headers;
    }

    /** Whether a record was redriven on the topic on which it is read now. */
    public static boolean isRedriven(Headers headers) {
        return headers.lastHeader(DeadLetterHeaders.REDRIVEN_FROM) != null;
    }

    /** The mark as a record for the dead-letter topic; {@code key} is the letter's. */
    public ProducerRecord<byte[], byte[]> record(String topic, byte[] key) {
        Headers headers = new RecordHeaders();
        put(headers, DeadLetterHeaders.REDRIVEN_FROM, place(letterPartition, letterOffset));
        put(headers, DeadLetterHeaders.SOURCE_TOPIC, source.getTopic());
        put(headers, DeadLetterHeaders.SOURCE_PARTITION, Integer.toString(source.getPartition()));
        put(headers, DeadLetterHeaders.SOURCE_OFFSET, Long.toString(source.getOffset()));
        put(headers, DeadLetterHeaders.REDRIVEN_TO_OFFSET, Long.toString(newOffset));
        put(headers, DeadLetterHeaders.REDRIVEN_SAMPLES, Long.toString(samples));
        put(headers, DeadLetterHeaders.REDRIVEN_ROLLOUT, rolloutPlace);
        put(headers, DeadLetterHeaders.ROLLOUT_ID, subject.rolloutId());
        put(headers, DeadLetterHeaders.RUN_ID, subject.runId());
        put(headers, DeadLetterHeaders.EPOCH, subject.epoch() < 0 ? "" : Integer.toString(subject.epoch()));
        return new ProducerRecord<>(topic, letterPartition, null, key, null, headers);
    }

    /** The mark that a record of the dead-letter topic is; empty if it is a letter, or nothing that we wrote. */
    public static Optional<RedriveMark> of(ConsumerRecord<?, ?> record) {
        Headers headers = record.headers();
        Matcher letter = PLACE.matcher(DeadLetterHeaders.text(headers, DeadLetterHeaders.REDRIVEN_FROM));
        String partition = DeadLetterHeaders.text(headers, DeadLetterHeaders.SOURCE_PARTITION);
        String offset = DeadLetterHeaders.text(headers, DeadLetterHeaders.SOURCE_OFFSET);
        String newOffset = DeadLetterHeaders.text(headers, DeadLetterHeaders.REDRIVEN_TO_OFFSET);
        String samples = DeadLetterHeaders.text(headers, DeadLetterHeaders.REDRIVEN_SAMPLES);
        if (record.value() != null
                || headers.lastHeader(DeadLetterHeaders.REASON) != null
                || !letter.matches()
                || !PLACE.matcher(partition + "@" + offset).matches()
                || !NUMBER.matcher(newOffset).matches()
                || !NUMBER.matcher(samples).matches()) {
            return Optional.empty();
        }
        return Optional.of(new RedriveMark(
                Integer.parseInt(letter.group(1)),
                Long.parseLong(letter.group(2)),
                new LogCoordinates(
                        DeadLetterHeaders.text(headers, DeadLetterHeaders.SOURCE_TOPIC),
                        Integer.parseInt(partition),
                        Long.parseLong(offset)),
                Long.parseLong(newOffset),
                Long.parseLong(samples),
                DeadLetterHeaders.text(headers, DeadLetterHeaders.REDRIVEN_ROLLOUT),
                new RedriveMark.Subject(
                        DeadLetterHeaders.text(headers, DeadLetterHeaders.ROLLOUT_ID),
                        DeadLetterHeaders.text(headers, DeadLetterHeaders.RUN_ID),
                        DeadLetterHeaders.epoch(headers, DeadLetterHeaders.EPOCH))));
    }

    private static void put(Headers headers, String name, String value) {
        if (!value.isEmpty()) {
            headers.add(name, value.getBytes(StandardCharsets.UTF_8));
        }
    }
}
