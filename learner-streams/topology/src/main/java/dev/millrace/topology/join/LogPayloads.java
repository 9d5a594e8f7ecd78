package dev.millrace.topology.join;

import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.ingress.RecordReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.api.Record;

/** Reads again what waits in one task, from its source partitions. */
final class LogPayloads implements PayloadSource {
    private final RecordFetcher fetcher;
    private final Function<JoinSide, TopicPartition> partitions;
    private final Map<JoinSide, RecordReader<Arrival>> readers;

    LogPayloads(
            RecordFetcher fetcher,
            Function<JoinSide, TopicPartition> partitions,
            Map<JoinSide, RecordReader<Arrival>> readers) {
        this.fetcher = fetcher;
        this.partitions = partitions;
        this.readers = readers;
    }

    @Override
    public List<Arrival> read(JoinSide kind, List<PendingRecord> waiting) {
        long[] offsets = waiting.stream().mapToLong(PendingRecord::offset).toArray();
        List<Arrival> arrivals = new ArrayList<>(offsets.length);
        int at = 0;
        for (ConsumerRecord<byte[], byte[]> record : fetcher.fetch(partitions.apply(kind), offsets)) {
            while (waiting.get(at).offset() != record.offset()) {
                at++;
            }
            arrivals.add(read(kind, record, waiting.get(at)));
        }
        return arrivals;
    }

    private Arrival read(JoinSide kind, ConsumerRecord<byte[], byte[]> record, PendingRecord waiting) {
        // the timestamp it first came with: an invalid one was replaced then
        Record<byte[], byte[]> raw =
                new Record<>(record.key(), record.value(), waiting.timestampMs(), record.headers());
        try {
            return Objects.requireNonNull(readers.get(kind), kind::name)
                    .read(raw, record.partition(), record.offset())
                    .orElseThrow();
        } catch (RefusedException e) {
            throw new IllegalStateException(
                    "the record at " + partitions.apply(kind) + "@" + record.offset()
                            + " was accepted when it came and is refused now: " + e.getMessage()
                            + "; was the run's tokenizer_hash, vocabulary_size or max_group_size changed?",
                    e);
        }
    }
}
