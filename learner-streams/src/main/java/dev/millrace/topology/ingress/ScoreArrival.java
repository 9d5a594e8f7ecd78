package dev.millrace.topology.ingress;

import dev.millrace.schemas.Score;
import org.apache.kafka.streams.processor.api.Record;

/** A score that was read and holds what it claims. */
public record ScoreArrival(SampleName name, Score score, Record<byte[], byte[]> raw, long offset) implements Arrival {

    /** Offset of the rollout's record that was scored. */
    public long scoredOffset() {
        return score.getRolloutSource().getOffset();
    }
}
