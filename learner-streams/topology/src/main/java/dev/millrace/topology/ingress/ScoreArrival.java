package dev.millrace.topology.ingress;

import dev.millrace.schemas.Score;
import dev.millrace.schemas.rollout.SampleName;
import org.apache.kafka.streams.processor.api.Record;
import org.jspecify.annotations.Nullable;

/** A score, reference score or teacher score that was read and holds what it claims; {@code kind} says which. */
public record ScoreArrival(SampleName name, JoinSide kind, Score score, Record<byte[], byte[]> raw, long offset)
        implements PartnerArrival {

    @Override
    public long aboutOffset() {
        return score.getRolloutSource().getOffset();
    }

    @Override
    public @Nullable String unavailable() {
        return score.getUnavailable();
    }
}
