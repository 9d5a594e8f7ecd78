package dev.millrace.audit.trace;

import dev.millrace.log.deadletter.RedriveMark;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.RunRecords;
import dev.millrace.log.scan.TopicScan;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * Reads the dead letters of a run. Each call reads the topic twice; memory is one entry per redriven letter and the
 * result. Owned by one thread.
 */
public final class DeadLetterTopic {
    private final RunRecords records;
    private final Duration patience;

    /** @param patience longest wait without records */
    public DeadLetterTopic(RunRecords records, Duration patience) {
        this.records = records;
        this.patience = patience;
    }

    /** @param newOffset of the redriven record on the same partition; -1 if not redriven */
    public record Listed(DeadLetter letter, long newOffset) {
        public boolean isRedriven() {
            return newOffset >= 0;
        }
    }

    /**
     * @param newest of the selected, oldest first
     * @param byReason those not redriven
     */
    public record Listing(List<Listed> newest, long count, long redriven, Map<String, Long> byReason) {}

    /** Counts selected letters and lists the newest {@code limit}. */
    public Listing list(DeadLetterFilter choice, int limit) {
        Deque<Listed> newest = new ArrayDeque<>();
        Map<String, Long> byReason = new TreeMap<>();
        long[] counts = new long[2];
        eachOf(choice, (letter, newOffset, record) -> {
            counts[0]++;
            counts[1] += newOffset >= 0 ? 1 : 0;
            if (newOffset < 0) {
                byReason.merge(letter.reason(), 1L, Long::sum);
            }
            newest.addLast(new Listed(letter, newOffset));
            if (newest.size() > limit) {
                newest.removeFirst();
            }
        });
        return new Listing(List.copyOf(newest), counts[0], counts[1], byReason);
    }

    private interface Reader {
        void read(DeadLetter letter, long newOffset, ConsumerRecord<byte[], byte[]> record);
    }

    /** Reads twice, since a mark follows its letter. */
    private void eachOf(DeadLetterFilter choice, Reader reader) {
        Map<String, Long> marks = new HashMap<>();
        try (TopicScan scan = records.scan(patience)) {
            String topic = records.topics().deadLetters();
            ConsistentCut cut = scan.cut(List.of(topic));
            scan.read(
                    topic,
                    cut,
                    record -> RedriveMark.of(record)
                            .ifPresent(mark -> marks.put(
                                    RedriveMark.place(mark.letterPartition(), mark.letterOffset()), mark.newOffset())));
            scan.read(
                    topic,
                    cut,
                    record -> DeadLetter.of(record)
                            .filter(choice::takes)
                            .ifPresent(letter -> reader.read(letter, marks.getOrDefault(key(letter), -1L), record)));
        }
    }

    private static String key(DeadLetter letter) {
        return RedriveMark.place(letter.partition(), letter.offset());
    }

    /** A letter with its payload. */
    public record Opened(DeadLetter letter, long newOffset, ConsumerRecord<byte[], byte[]> record) {}

    /** Several readers may have refused the same source offset. */
    public List<Opened> open(DeadLetterFilter choice) {
        List<Opened> found = new ArrayList<>();
        eachOf(choice, (letter, newOffset, record) -> found.add(new Opened(letter, newOffset, record)));
        return found;
    }
}
