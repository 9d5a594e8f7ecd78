package dev.millrace.replay.archive;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.replay.archive.RunImport.PartitionImport;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.stream.LongStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.junit.jupiter.api.Test;

class PartitionImportTest {
    private static final TopicPartition PARTITION = new TopicPartition("rollouts", 0);

    /** Records of a partition by offset; {@code hidden} ones are sent in an aborted transaction. */
    private static final class Log extends MockProducer<byte[], byte[]> {
        private final List<String> entries = new ArrayList<>();

        @Override
        public Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> record) {
            entries.add(
                    record.value() == null
                            ? "tombstone"
                            : record.value().length == 0 ? "hidden" : Byte.toString(record.value()[0]));
            return CompletableFuture.completedFuture(new RecordMetadata(PARTITION, entries.size() - 1, 0, 0, 0, 0));
        }
    }

    private static ConsumerRecord<byte[], byte[]> record(long offset) {
        return new ConsumerRecord<>(
                PARTITION.topic(),
                0,
                offset,
                1000 + offset,
                TimestampType.CREATE_TIME,
                0,
                1,
                new byte[0],
                new byte[] {(byte) offset},
                new RecordHeaders(),
                Optional.empty());
    }

    /** Records whose values are their offsets. */
    private static RecordCursor records(Iterator<Long> offsets) {
        return new RecordCursor() {
            @Override
            public Optional<ConsumerRecord<byte[], byte[]>> next() {
                return offsets.hasNext() ? Optional.of(record(offsets.next())) : Optional.empty();
            }

            @Override
            public void close() {
                // reads a list
            }
        };
    }

    private static List<String> imported(long end, long most, Long... offsets) {
        Log log = new Log();
        try (PartitionImport partition =
                new PartitionImport(PARTITION, records(List.of(offsets).iterator()), end, Map.of())) {
            while (!partition.isDone()) {
                partition.sendRecords(log);
                if (partition.hasLast()) {
                    partition.sendLast(log);
                    log.entries.add("commit");
                } else if (partition.isToFill()) {
                    assertThat(partition.fill(log, most)).isBetween(2L, most);
                    log.entries.add("abort");
                }
                partition.settle();
                assertThat(partition.next()).isEqualTo(log.entries.size());
            }
            assertThat(partition.isTombstoned()).isEqualTo(log.entries.contains("tombstone"));
        }
        return log.entries;
    }

    @Test
    void shouldMakeOffsetsWithoutARecordOfMarkersAndAbortedRecords() {
        assertThat(imported(9, 100, 0L, 1L, 3L, 7L))
                .containsExactly("0", "1", "commit", "3", "hidden", "hidden", "abort", "7", "commit");
        assertThat(imported(4, 100, 3L)).containsExactly("hidden", "hidden", "abort", "3");
        assertThat(imported(3, 100, 1L, 2L)).containsExactly("tombstone", "1", "2");
        assertThat(imported(3, 100)).containsExactly("hidden", "hidden", "abort");
        assertThat(imported(0, 100)).isEmpty();
    }

    @Test
    void shouldFillInSeveralTransactionsAndLeaveNoOffsetAlone() {
        assertThat(imported(6, 3, 0L)).containsExactly("0", "hidden", "hidden", "abort", "hidden", "abort");
        assertThat(imported(5, 3, 0L)).containsExactly("0", "hidden", "abort", "hidden", "abort");
    }

    @Test
    void shouldPutEveryRecordAtItsOffsetWhereverTheyLie() {
        Random random = new Random(5);
        for (int round = 0; round < 500; round++) {
            TreeSet<Long> offsets = new TreeSet<>();
            for (int i = random.nextInt(20); i > 0; i--) {
                offsets.add((long) random.nextInt(40));
            }
            long end = (offsets.isEmpty() ? 0 : offsets.last() + 1) + random.nextInt(6);
            List<String> entries = imported(end, 3 + random.nextInt(6), offsets.toArray(Long[]::new));
            assertThat(entries).hasSize((int) end);
            assertThat(LongStream.range(0, end)
                            .filter(at -> entries.get((int) at).equals(Long.toString(at)))
                            .boxed())
                    .as(entries.toString())
                    .containsExactlyElementsOf(offsets);
        }
    }

    @Test
    void shouldSayThatSomebodyElseWritesToTheTopic() {
        Log log = new Log();
        log.entries.add("a stranger's");
        try (PartitionImport partition =
                new PartitionImport(PARTITION, records(List.of(0L).iterator()), 1, Map.of())) {
            partition.sendRecords(log);
            assertThatThrownBy(partition::settle)
                    .isInstanceOf(ArchiveException.class)
                    .hasMessageStartingWith(
                            "the record of rollouts-0@0 was written at offset 1; another process writes to the topic");
        }
    }
}
