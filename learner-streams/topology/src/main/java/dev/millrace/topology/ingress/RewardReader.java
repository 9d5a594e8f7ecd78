package dev.millrace.topology.ingress;

import dev.millrace.schemas.Reward;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.rollout.CreditCheck;
import dev.millrace.schemas.rollout.OwnershipCheck;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.rollout.SampleName;
import dev.millrace.schemas.rollout.VectorCheck;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.streams.processor.api.Record;
import org.jspecify.annotations.Nullable;

/**
 * Reads rewards: of this run and epoch, under their group id, about a record of the rollouts topic in their own
 * partition, and finite, unless they say why there is none.
 */
public final class RewardReader implements RecordReader<Arrival> {
    private final RecordDecoding<Reward> decoding;
    private final OwnershipCheck ownership;
    private final String rolloutsTopic;
    private final IngressConfig config;

    public RewardReader(
            String topic, SchemaRegistry registry, RunIdentity run, String rolloutsTopic, IngressConfig config) {
        this.decoding =
                new RecordDecoding<>(topic, AvroSerde.of(Reward.class, registry).deserializer());
        this.ownership = new OwnershipCheck(run);
        this.rolloutsTopic = rolloutsTopic;
        this.config = config;
    }

    @Override
    public Optional<Arrival> read(Record<byte[], byte[]> raw, int partition, long offset) throws RefusedException {
        Reward reward = decoding.decode(raw.value());
        try {
            return Optional.of(new RewardArrival(check(reward, raw.key(), partition), reward, raw, offset));
        } catch (RefusedException e) {
            throw new RefusedException(e.refusal().about(reward.getRunId(), reward.getEpoch(), reward.getRolloutId()));
        }
    }

    private SampleName check(Reward reward, byte @Nullable [] key, int partition) throws RefusedException {
        ownership.requireOurs(reward.getRunId(), reward.getEpoch());
        SampleName name = SampleName.of(reward.getRolloutId(), reward.getGroupId(), config.maxGroupSize());
        OwnershipCheck.requireKey(key, reward.getGroupId(), "group_id");
        OwnershipCheck.requireRollout(reward.getRolloutSource(), rolloutsTopic, partition);
        if (reward.getUnavailable() == null) {
            VectorCheck.requireReward(reward.getReward(), config.maxReward());
            CreditCheck.require(reward.getCredit(), -1, -1, config.maxReward());
            for (Map.Entry<String, Double> component :
                    reward.getRewardComponents().entrySet()) {
                if (!Double.isFinite(component.getValue())) {
                    throw new RefusedException(
                            RefusalReason.REWARD,
                            "reward_components." + component.getKey(),
                            "a component of a reward must be finite: " + component.getValue());
                }
            }
        }
        return name;
    }
}
