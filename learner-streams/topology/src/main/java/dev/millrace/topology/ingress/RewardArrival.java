package dev.millrace.topology.ingress;

import dev.millrace.schemas.Reward;
import dev.millrace.schemas.rollout.SampleName;
import org.apache.kafka.streams.processor.api.Record;
import org.jspecify.annotations.Nullable;

/** A reward that was read and holds what it claims. */
public record RewardArrival(SampleName name, Reward reward, Record<byte[], byte[]> raw, long offset)
        implements PartnerArrival {

    @Override
    public JoinSide kind() {
        return JoinSide.REWARD;
    }

    @Override
    public long aboutOffset() {
        return reward.getRolloutSource().getOffset();
    }

    @Override
    public @Nullable String unavailable() {
        return reward.getUnavailable();
    }
}
