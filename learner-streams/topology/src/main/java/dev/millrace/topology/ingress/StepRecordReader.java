package dev.millrace.topology.ingress;

import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.rollout.OwnershipCheck;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import java.util.Optional;
import org.apache.kafka.streams.processor.api.Record;

/** Reads the training log for the batches that were starved; of the others the versions tell. */
public final class StepRecordReader implements RecordReader<AssemblyArrival> {
    private final RecordDecoding<TrainingStep> decoding;
    private final OwnershipCheck ownership;

    public StepRecordReader(String topic, SchemaRegistry registry, RunIdentity run) {
        this.decoding = new RecordDecoding<>(
                topic, AvroSerde.of(TrainingStep.class, registry).deserializer());
        this.ownership = new OwnershipCheck(run);
    }

    @Override
    public Optional<AssemblyArrival> read(Record<byte[], byte[]> raw, int partition, long offset)
            throws RefusedException {
        TrainingStep step = decoding.decode(raw.value());
        try {
            ownership.requireOurs(step.getRunId(), step.getEpoch());
            ownership.requirePolicy(step.getPolicyId());
            OwnershipCheck.requireKey(raw.key(), step.getPolicyId(), "policy_id");
            if (step.getBatchId() < 0) {
                throw new RefusedException(
                        RefusalReason.IDENTITY, "batch_id", "batch_id must be at least 0: " + step.getBatchId());
            }
        } catch (RefusedException e) {
            throw new RefusedException(e.refusal().about(step.getRunId(), step.getEpoch(), ""));
        }
        return step.getStarved()
                ? Optional.of(new StarvedArrival(step.getBatchId(), step.getVersion(), raw.timestamp(), offset))
                : Optional.empty();
    }
}
