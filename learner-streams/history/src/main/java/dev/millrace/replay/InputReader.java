package dev.millrace.replay;

import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.log.deadletter.DeadLetters;
import dev.millrace.replay.InputReader.DeadLetterReader.Letter;
import dev.millrace.replay.ReplayDifference.ReplayDifferenceException;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.topology.TopologyTasks.Input;
import dev.millrace.topology.state.RecordTimestampExtractor;
import dev.millrace.topology.state.SeenHeader;
import dev.millrace.topology.task.TaskOutput;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Valid records of a task's input; the others must be the run's dead letters, byte for byte. Confined to one thread.
 *
 * @param <A> what the task takes
 */
final class InputReader<A> implements AutoCloseable {

    record Taken<A>(A arrival, long timestampMs) {}

    private final Input<A> input;
    private final TopicPartition partition;
    private final RecordCursor cursor;
    private final DeadLetterReader letters;
    private final RecordComparison comparison;
    private final String deadLetters;
    private final LongAdder progress;
    private final RunIdentity refusedBy;
    private long partitionTimeMs = -1;
    private long lettersCompared;

    /** @param progress receives the number of offsets passed */
    InputReader(
            RecordedRun run,
            Input<A> input,
            TopicPartition partition,
            RecordComparison comparison,
            LongAdder progress) {
        this.input = input;
        this.partition = partition;
        this.cursor = run.read(partition, run.lineage().beginning(partition.topic(), partition.partition()));
        this.letters = new DeadLetterReader(run, partition);
        this.comparison = comparison;
        this.deadLetters = run.topics().deadLetters();
        this.progress = progress;
        this.refusedBy = run.run();
    }

    /** Empty at the end of the record. */
    Optional<Taken<A>> next() {
        for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next(); next.isPresent(); next = cursor.next()) {
            Optional<Taken<A>> taken = read(next.get(), true);
            if (taken.isPresent()) {
                return taken;
            }
        }
        return Optional.empty();
    }

    private Optional<Taken<A>> read(ConsumerRecord<byte[], byte[]> record, boolean wasRead) {
        progress.increment();
        if (passedInQuarantine(record)) {
            return Optional.empty();
        }
        long eventMs = RecordTimestampExtractor.of(record, partitionTimeMs);
        partitionTimeMs = Math.max(partitionTimeMs, eventMs);
        try {
            return input.reader()
                    .read(
                            new Record<>(record.key(), record.value(), eventMs, record.headers()),
                            record.partition(),
                            record.offset())
                    .map(arrival -> new Taken<>(arrival, eventMs));
        } catch (RefusedException e) {
            Headers headers = DeadLetters.headers(
                    record.headers(),
                    new DeadLetters.Source(record.topic(), record.partition(), record.offset(), eventMs),
                    e.refusal(),
                    refusedBy);
            headers.remove(SeenHeader.HEADER);
            compare(record, new TaskOutput(deadLetters, record.key(), record.value(), headers), wasRead);
            return Optional.empty();
        }
    }

    /** Quarantine is not part of the task's inputs, so the dead letter is trusted. */
    private boolean passedInQuarantine(ConsumerRecord<byte[], byte[]> record) {
        Optional<Letter> letter = letters.peek().filter(it -> it.sourceOffset() == record.offset());
        if (letter.isEmpty()
                || !RefusalReason.QUARANTINED
                        .code()
                        .equals(DeadLetterHeaders.text(letter.get().record().headers(), DeadLetterHeaders.REASON))) {
            return false;
        }
        partitionTimeMs = Math.max(partitionTimeMs, RecordTimestampExtractor.of(record, partitionTimeMs));
        lettersCompared++;
        letters.pass();
        return true;
    }

    private void compare(ConsumerRecord<byte[], byte[]> refused, TaskOutput replayed, boolean wasRead) {
        String what = "the dead letter of " + partition + "@" + refused.offset();
        Optional<Letter> letter = letters.peek();
        if (letter.isEmpty() || letter.get().sourceOffset() != refused.offset()) {
            if (wasRead) {
                throw new ReplayDifferenceException(
                        new ReplayDifference("the check of " + partition, what, "", "none", "one"));
            }
            return; // beyond the run's progress
        }
        comparison.compare(letter.get().record(), replayed).ifPresent(where -> {
            throw new ReplayDifferenceException(new ReplayDifference(
                    "the check of " + partition, what, where.field(), where.recorded(), where.replayed()));
        });
        lettersCompared++;
        letters.pass();
    }

    /** Reads the remaining dead letters without taking anything in. */
    void compareRestOfLetters() {
        while (letters.peek().isPresent()) {
            long expected = letters.peek().get().sourceOffset();
            Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
            if (next.isEmpty() || next.get().offset() > expected) {
                throw new ReplayDifferenceException(new ReplayDifference(
                        "the check of " + partition,
                        "the dead letter of " + partition + "@" + expected,
                        "",
                        "one",
                        "none, since no such record is refused"));
            }
            read(next.get(), false);
        }
    }

    TopicPartition partition() {
        return partition;
    }

    long lettersCompared() {
        return lettersCompared;
    }

    @Override
    public void close() {
        cursor.close();
        letters.close();
    }

    /** Dead letters of one partition's records refused before the task, in order of position. Confined to one thread. */
    static final class DeadLetterReader implements AutoCloseable {

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
            for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                    next.isPresent();
                    next = cursor.next()) {
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
}
