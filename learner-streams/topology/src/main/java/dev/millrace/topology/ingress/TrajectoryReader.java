package dev.millrace.topology.ingress;

import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.rollout.OwnershipCheck;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.rollout.SampleName;
import dev.millrace.schemas.rollout.TrajectoryCheck;
import dev.millrace.schemas.rollout.VectorCheck;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import java.util.Optional;
import org.apache.kafka.streams.processor.api.Record;
import org.jspecify.annotations.Nullable;

/**
 * Reads trajectories. They are the topology's own work, but the topic is open to others, so what the assembly relies on
 * is asked all the same.
 */
public final class TrajectoryReader implements RecordReader<AssemblyArrival> {
    private final RecordDecoding<Trajectory> decoding;
    private final OwnershipCheck ownership;
    private final IngressConfig config;

    public TrajectoryReader(String topic, SchemaRegistry registry, RunIdentity run, IngressConfig config) {
        this.decoding = new RecordDecoding<>(
                topic, AvroSerde.of(Trajectory.class, registry).deserializer());
        this.ownership = new OwnershipCheck(run);
        this.config = config;
    }

    @Override
    public Optional<AssemblyArrival> read(Record<byte[], byte[]> raw, int partition, long offset)
            throws RefusedException {
        Trajectory trajectory = decoding.decode(raw.value());
        try {
            check(trajectory, raw.key());
        } catch (RefusedException e) {
            throw new RefusedException(
                    e.refusal().about(trajectory.getRunId(), trajectory.getEpoch(), trajectory.getRolloutId()));
        }
        return Optional.of(new TrajectoryArrival(trajectory, raw, partition, offset));
    }

    private void check(Trajectory trajectory, byte @Nullable [] key) throws RefusedException {
        ownership.requireOurs(trajectory.getRunId(), trajectory.getEpoch());
        ownership.requirePolicy(trajectory.getPolicyId());
        SampleName name = SampleName.of(trajectory.getRolloutId(), trajectory.getGroupId(), config.maxGroupSize());
        OwnershipCheck.requireKey(key, trajectory.getGroupId(), "group_id");
        if (name.sampleIndex() != trajectory.getSampleIndex()
                || trajectory.getSampleIndex() >= trajectory.getGroupSize()) {
            throw new RefusedException(
                    RefusalReason.IDENTITY,
                    "sample_index",
                    "sample_index must be that of rollout_id '"
                            + trajectory.getRolloutId() + "' and below group_size " + trajectory.getGroupSize() + ": "
                            + trajectory.getSampleIndex());
        }
        TrajectoryCheck.require(trajectory, config.vocabularySize());
        VectorCheck.requireReward(trajectory.getReward(), config.maxReward());
    }
}
