package dev.millrace.replay.retrain;

import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.log.deadletter.RefusedPlaces;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.replay.BatchTrajectories;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.serde.AvroRecordDeserializer;
import dev.millrace.schemas.serde.AvroSerde;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.LongPredicate;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** Steps in order with batch and trajectories; one in memory. */
final class RecordedSteps {
    private final RecordedRun run;
    private final RecordedVersions versions;
    private final AvroRecordDeserializer<LearnerBatch> deserializer;

    RecordedSteps(RecordedRun run, RecordedVersions versions) {
        this.run = run;
        this.versions = versions;
        this.deserializer = AvroSerde.of(LearnerBatch.class, run.registry()).deserializer();
    }

    /**
     * @param wanted by start version; skips others' trajectories
     * @throws ArchiveException if a batch is missing
     */
    void forEach(VersionInterval range, LongPredicate wanted, Consumer<RecordedStep> taker) {
        try (RecordFetcher fetcher = run.fetcher()) {
            forEachBatch(range, (version, batch) -> {
                if (wanted.test(version)) {
                    taker.accept(new RecordedStep(
                            version,
                            TrainingBatch.of(batch, BatchTrajectories.of(run, batch, fetcher)),
                            versions.manifest(version + 1)));
                }
            });
        }
    }

    /** Checks all batches before the first is used; throws as {@link #forEach}. */
    void requireAll(VersionInterval range) {
        forEachBatch(range, (version, batch) -> {});
    }

    /** Batches alone, with the start version of their step; throws as {@link #forEach}. */
    void forEachBatch(VersionInterval range, BiConsumer<Long, LearnerBatch> taker) {
        long next = range.from();
        RefusedPlaces refused = run.refused(run.topics().batches());
        for (TopicPartition partition : run.partitions(run.topics().batches())) {
            try (RecordCursor cursor = run.read(partition, run.range(partition).from())) {
                for (Optional<ConsumerRecord<byte[], byte[]>> record = cursor.next();
                        record.isPresent() && next < range.to();
                        record = cursor.next()) {
                    Optional<LearnerBatch> batch = refused.has(record.get()) ? Optional.empty() : batch(record.get());
                    OptionalLong from = batch.isEmpty()
                            ? OptionalLong.empty()
                            : versions.beginningOf(batch.get().getBatchId());
                    if (from.isPresent() && from.getAsLong() == next) {
                        taker.accept(next, batch.get());
                        next++;
                    }
                }
            }
        }
        if (next < range.to()) {
            throw new ArchiveException("the batch that made version " + (next + 1) + " is not on "
                    + run.topics().batches()
                    + "; choose a later --from-version, or replay an archive that was exported in time");
        }
    }

    /** Empty for records of another run or policy. */
    private Optional<LearnerBatch> batch(ConsumerRecord<byte[], byte[]> record) {
        return TopicScan.readable(deserializer, record)
                .filter(batch -> run.run().owns(batch.getRunId(), batch.getEpoch())
                        && run.run().policyId().equals(batch.getPolicyId()));
    }

    /**
     * @param from start version
     * @param batch as recorded
     * @param made new version
     */
    record RecordedStep(long from, TrainingBatch batch, PolicyVersion made) {}
}
