package dev.millrace.log.deadletter;

import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.schemas.LogCoordinates;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Records that a role refused: they are still on their topics, and decide nothing. Keeps one entry for each dead letter from
 * these topics. Not thread-safe.
 */
public final class RefusedPlaces {
    private static final Pattern PLACE = Pattern.compile("(\\d{1,9})@(\\d{1,18})");

    private final Set<String> topics;
    private final Map<TopicPartition, Set<Long>> places = new HashMap<>();

    public RefusedPlaces(Set<String> topics) {
        this.topics = topics;
    }

    /**
     * Reads the dead letters of a run.
     *
     * @param cut where the run has dead letters, holds them
     */
    public static RefusedPlaces read(TopicScan scan, ConsistentCut cut, String deadLetters, Set<String> topics) {
        RefusedPlaces refused = new RefusedPlaces(topics);
        if (cut.has(deadLetters)) {
            scan.read(deadLetters, cut, refused::add);
        }
        return refused;
    }

    public void add(ConsumerRecord<byte[], byte[]> letter) {
        source(letter)
                .filter(source -> topics.contains(source.getTopic()))
                .ifPresent(source -> places.computeIfAbsent(
                                new TopicPartition(source.getTopic(), source.getPartition()), unseen -> new HashSet<>())
                        .add(source.getOffset()));
    }

    /** The place of the record that a dead letter is about; empty if the record is no letter or names no place. */
    public static Optional<LogCoordinates> source(ConsumerRecord<byte[], byte[]> letter) {
        Matcher place = PLACE.matcher(RedriveMark.place(
                DeadLetterHeaders.text(letter.headers(), DeadLetterHeaders.SOURCE_PARTITION),
                DeadLetterHeaders.text(letter.headers(), DeadLetterHeaders.SOURCE_OFFSET)));
        boolean isLetter = !DeadLetterHeaders.text(letter.headers(), DeadLetterHeaders.REASON)
                .isEmpty();
        return isLetter && place.matches()
                ? Optional.of(new LogCoordinates(
                        DeadLetterHeaders.text(letter.headers(), DeadLetterHeaders.SOURCE_TOPIC),
                        Integer.parseInt(place.group(1)),
                        Long.parseLong(place.group(2))))
                : Optional.empty();
    }

    public boolean has(ConsumerRecord<?, ?> record) {
        return has(new TopicPartition(record.topic(), record.partition()), record.offset());
    }

    public boolean has(TopicPartition partition, long offset) {
        Set<Long> offsets = places.get(partition);
        return offsets != null && offsets.contains(offset);
    }
}
