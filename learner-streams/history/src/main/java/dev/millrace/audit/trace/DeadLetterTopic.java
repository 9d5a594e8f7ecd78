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
import java.util.function.Consumer;
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
        eachOf(choice, opened -> {
            counts[0]++;
            counts[1] += opened.newOffset() >= 0 ? 1 : 0;
            if (opened.newOffset() < 0) {
                byReason.merge(opened.letter().reason(), 1L, Long::sum);
            }
            newest.addLast(new Listed(opened.letter(), opened.newOffset()));
            if (newest.size() > limit) {
                newest.removeFirst();
            }
        });
        return new Listing(List.copyOf(newest), counts[0], counts[1], byReason);
    }

    /** Reads twice, since a mark follows its letter. */
    private void eachOf(DeadLetterFilter choice, Consumer<Opened> reader) {
        try (TopicScan scan = records.scan(patience)) {
            String topic = records.topics().deadLetters();
            eachOf(choice, topic, scan, scan.cut(List.of(topic)), reader);
        }
    }

    static void eachOf(
            DeadLetterFilter choice, String topic, TopicScan scan, ConsistentCut cut, Consumer<Opened> reader) {
        Map<String, Long> marks = new HashMap<>();
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
                        .ifPresent(letter -> reader.accept(new Opened(
                                letter,
                                marks.getOrDefault(RedriveMark.place(letter.partition(), letter.offset()), -1L),
                                record))));
    }

    /**
     * A letter with its payload.
     *
     * @param newOffset -1 if not redriven
     */
    public record Opened(DeadLetter letter, long newOffset, ConsumerRecord<byte[], byte[]> record) {}

    /** Several readers may have refused the same source offset. */
    public List<Opened> open(DeadLetterFilter choice) {
        List<Opened> found = new ArrayList<>();
        eachOf(choice, found::add);
        return found;
    }
}
