package dev.millrace.replay;

import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.topology.state.SeenHeader;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.PriorityQueue;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Reads the records that one task made, from all topics that it writes to, in the order of their creation.
 *
 * <p>Each partition has a task's records in the order of their numbers, so one record of each is held. Every task's
 * replay reads every partition separately and skips the records of other tasks, so that tasks never wait for each
 * other. A record with a number that the partition already had is a copy by another writer, and is skipped. Confined to
 * one thread.
 */
final class OutputReader implements AutoCloseable {

    /** A record of the run, and what its task had seen. */
    record Output(ConsumerRecord<byte[], byte[]> record, SeenHeader seen) {
        String place() {
            return record.topic() + "-" + record.partition() + "@" + record.offset();
        }
    }

    private static final class Source {
        private final RecordCursor cursor;
        private long lastNumber = -1;

        Source(RecordCursor cursor) {
            this.cursor = cursor;
        }
    }

    private record Head(Source source, Output output) {}

    private final String task;
    private final List<Source> sources = new ArrayList<>();
    private final PriorityQueue<Head> heads = new PriorityQueue<>(
            Comparator.comparingLong((Head head) -> head.output().seen().number()));

    OutputReader(RecordedRun run, String task, List<String> topics) {
        this.task = task;
        for (String topic : topics) {
            for (TopicPartition partition : run.partitions(topic)) {
                Source source = new Source(run.read(partition, 0));
                sources.add(source);
                advance(source);
            }
        }
    }

    private void advance(Source source) {
        for (Optional<ConsumerRecord<byte[], byte[]>> next = source.cursor.next();
                next.isPresent();
                next = source.cursor.next()) {
            if (SeenHeader.isOf(next.get().headers(), task)) {
                SeenHeader seen = SeenHeader.of(next.get().headers()).orElseThrow();
                if (seen.number() > source.lastNumber) {
                    source.lastNumber = seen.number();
                    heads.add(new Head(source, new Output(next.get(), seen)));
                    return;
                }
            }
        }
    }

    /** The next record; empty behind the last. */
    Optional<Output> peek() {
        return Optional.ofNullable(heads.peek()).map(Head::output);
    }

    /** Moves to the next record. */
    void pass() {
        advance(heads.remove().source());
    }

    @Override
    public void close() {
        sources.forEach(source -> source.cursor.close());
    }
}
