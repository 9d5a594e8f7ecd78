package dev.millrace.log.deadletter;

import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.TopicScan;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Records that a role refused: they are still on their topics, and decide nothing. Keeps one entry for each dead letter from
 * these topics. Not thread-safe.
 */
public final class RefusedRecords {
    private static final Pattern PLACE = Pattern.compile("(\\d{1,9})@(\\d{1,18})");

    private final Map<TopicPartition, Set<Long>> places = new HashMap<>();

    /**
     * Reads the dead letters of a run.
     *
     * @param cut holds the dead letters, and those of the topics that exist
     * @param topics whose refused records are wanted
     */
    public static RefusedRecords read(TopicScan scan, ConsistentCut cut, String deadLetters, Set<String> topics) {
        RefusedRecords refused = new RefusedRecords();
        scan.read(deadLetters, cut, record -> refused.add(record, topics, cut));
        return refused;
    }

    private void add(ConsumerRecord<byte[], byte[]> letter, Set<String> topics, ConsistentCut cut) {
        String topic = DeadLetterHeaders.text(letter.headers(), DeadLetterHeaders.SOURCE_TOPIC);
        Matcher place = PLACE.matcher(RedriveMark.place(
                DeadLetterHeaders.text(letter.headers(), DeadLetterHeaders.SOURCE_PARTITION),
                DeadLetterHeaders.text(letter.headers(), DeadLetterHeaders.SOURCE_OFFSET)));
        boolean isLetter = !DeadLetterHeaders.text(letter.headers(), DeadLetterHeaders.REASON)
                .isEmpty();
        if (!isLetter || !topics.contains(topic) || !place.matches()) {
            return;
        }
        TopicPartition partition = new TopicPartition(topic, Integer.parseInt(place.group(1)));
        long offset = Long.parseLong(place.group(2));
        if (cut.has(partition) && cut.of(partition).holds(offset)) {
            places.computeIfAbsent(partition, unseen -> new HashSet<>()).add(offset);
        }
    }

    /** Whether this record was refused. */
    public boolean has(ConsumerRecord<?, ?> record) {
        Set<Long> offsets = places.get(new TopicPartition(record.topic(), record.partition()));
        return offsets != null && offsets.contains(record.offset());
    }
}
