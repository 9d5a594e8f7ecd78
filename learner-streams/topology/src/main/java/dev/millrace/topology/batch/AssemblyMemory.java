package dev.millrace.topology.batch;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import dev.millrace.schemas.serde.AvroRecordDeserializer;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.stages.BaselineMemory;
import dev.millrace.stages.BaselineMemory.Kept;
import dev.millrace.stages.BaselineMemory.Update;
import dev.millrace.topology.RunContext;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.LongStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** The {@link BaselineMemory} of a run, in the assembly's store. Confined to one task. */
final class AssemblyMemory {
    /** Records that are read at once, at most. */
    private static final int STRETCH = 500;

    private final BaselineMemory memory;
    private final AssemblyStore store;
    private final RunContext context;

    private AssemblyMemory(BaselineMemory memory, AssemblyStore store, RunContext context) {
        this.memory = memory;
        this.store = store;
        this.context = context;
        for (Map.Entry<String, Kept> entry : store.kept.all().entrySet()) {
            if (entry.getKey().startsWith(prefix())) {
                memory.put(entry.getKey().substring(prefix().length()), entry.getValue());
            } else { // of another kind of advantage, which the run had before
                store.kept.delete(entry.getKey());
            }
        }
    }

    /** The memory as the store has it; none where the algorithm's advantage keeps nothing. */
    static Optional<AssemblyMemory> of(Algorithm algorithm, AssemblyStore store, RunContext context) {
        return BaselineMemory.of(algorithm).map(memory -> new AssemblyMemory(memory, store, context));
    }

    private String prefix() {
        return memory.kind() + "/";
    }

    /** The facts of a batch with the baselines that it is decided with. */
    StageFacts before(StageFacts facts) {
        return memory.before(facts);
    }

    /**
     * Updates the memory with a batch that was decided.
     *
     * @return what became of it
     */
    StageReport after(long batchId, StageFacts facts) {
        Update update = memory.after(batchId, facts);
        write(update);
        context.meters().baselinesForgotten(update.forgotten().size());
        return new StageReport(
                "memory",
                (long) facts.tokens().trainedTokens(),
                0L,
                (long) facts.tokens().sequenceCount(),
                0L,
                new TreeMap<>(
                        Map.of("keys", (double) memory.size(), "added", (double) update.added(), "forgotten", (double)
                                update.forgotten().size())));
    }

    private void write(Update update) {
        update.updated().forEach((key, kept) -> store.kept.put(prefix() + key, kept));
        update.forgotten().forEach(key -> store.kept.delete(prefix() + key));
    }

    /**
     * Takes an epoch's memory back to what it was at the version that the epoch begins with, by the batches of the epochs before.
     *
     * @param lastBatchId batch of that version
     * @throws IllegalStateException if the log no longer has one of the batches
     */
    void begin(long lastBatchId) {
        Map<Long, LearnerBatch> past = past(lastBatchId);
        for (long batchId = 0; batchId <= lastBatchId; batchId++) {
            LearnerBatch batch = past.get(batchId);
            if (batch == null) {
                throw new IllegalStateException("algorithm.advantage.kind=" + memory.kind()
                        + " keeps baselines from batch to batch, and they cannot be restored to batch " + lastBatchId
                        + ", after which epoch " + context.run().epoch() + " begins: batch " + batchId + " is not on "
                        + context.topics().batches()
                        + "; restart with an advantage without state, such as batch_mean");
            }
            write(memory.after(batch));
        }
    }

    /** The batches that led to the version, by id: of those with one id, the youngest epoch's. */
    private Map<Long, LearnerBatch> past(long lastBatchId) {
        Map<Long, LearnerBatch> past = new TreeMap<>();
        AvroRecordDeserializer<LearnerBatch> reader =
                AvroSerde.of(LearnerBatch.class, context.registry()).deserializer();
        String topic = context.topics().batches();
        List<Integer> epochs =
                context.lineage().ancestors().stream().map(Ancestor::epoch).toList();
        try (RecordFetcher fetcher = context.fetchers().get()) {
            for (int partition = 0; context.lineage().beginning(topic, partition) > 0; partition++) {
                long end = context.lineage().beginning(topic, partition);
                for (long from = 0; from < end; from += STRETCH) {
                    long[] offsets = LongStream.range(from, Math.min(end, from + STRETCH))
                            .toArray();
                    for (ConsumerRecord<byte[], byte[]> record :
                            fetcher.fetch(new TopicPartition(topic, partition), offsets)) {
                        read(reader, record)
                                .filter(batch -> batch.getBatchId() <= lastBatchId
                                        && batch.getRunId().equals(context.run().runId())
                                        && batch.getPolicyId()
                                                .equals(context.run().policyId())
                                        && epochs.contains(batch.getEpoch()))
                                .ifPresent(batch -> past.merge(
                                        batch.getBatchId(),
                                        batch,
                                        (one, other) -> other.getEpoch() > one.getEpoch() ? other : one));
                    }
                }
            }
        }
        return past;
    }

    private static Optional<LearnerBatch> read(
            AvroRecordDeserializer<LearnerBatch> reader, ConsumerRecord<byte[], byte[]> record) {
        try {
            return Optional.ofNullable(reader.deserialize(record.topic(), record.value()));
        } catch (MalformedRecordException notABatch) {
            return Optional.empty();
        }
    }
}
