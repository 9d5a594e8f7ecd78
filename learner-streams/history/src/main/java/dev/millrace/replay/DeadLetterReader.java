package dev.millrace.replay;

import dev.millrace.log.deadletter.DeadLetterHeaders;
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
import org.apache.kafka.common.header.Headers;

/**
 * The dead letters of records of one partition that were refused before a task saw them, in the order of their places.
 * Confined to one thread.
 */
final class DeadLetterReader implements AutoCloseable {

    /** A dead letter, and where the refused record lies. */
    record Letter(ConsumerRecord<byte[], byte[]> record, long sourceOffset) {}

    private record Head(RecordCursor cursor, Letter letter) {}

    private final TopicPartition source;
    private final List<RecordCursor> cursors = new ArrayList<>();
    private final PriorityQueue<Head> heads = new PriorityQueue<>(
            Comparator.comparingLong((Head head) -> head.letter().sourceOffset()));

    DeadLetterReader(RecordedRun run, TopicPartition source) {
        this.source = source;
        for (TopicPartition partition : run.partitions(run.topics().deadLetters())) {
            RecordCursor cursor = run.read(partition, 0);
            cursors.add(cursor);
            advance(cursor);
        }
    }

    private void advance(RecordCursor cursor) {
        for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next(); next.isPresent(); next = cursor.next()) {
            Headers headers = next.get().headers();
            if (headers.lastHeader(SeenHeader.HEADER) == null
                    && headers.lastHeader(DeadLetterHeaders.REASON) != null
                    && source.topic().equals(DeadLetterHeaders.text(headers, DeadLetterHeaders.SOURCE_TOPIC))
                    && Integer.toString(source.partition())
                            .equals(DeadLetterHeaders.text(headers, DeadLetterHeaders.SOURCE_PARTITION))) {
                heads.add(new Head(
                        cursor,
                        new Letter(
                                next.get(),
                                Long.parseLong(DeadLetterHeaders.text(headers, DeadLetterHeaders.SOURCE_OFFSET)))));
                return;
            }
        }
    }

    Optional<Letter> peek() {
        return Optional.ofNullable(heads.peek()).map(Head::letter);
    }

    void pass() {
        advance(heads.remove().cursor());
    }

    @Override
    public void close() {
        cursors.forEach(RecordCursor::close);
    }
}
