package dev.millrace.topology.ingress;

import dev.millrace.log.deadletter.RedriveMark;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.rollout.SampleName;
import org.apache.kafka.streams.processor.api.Record;

/** A rollout that was read and holds what it claims. */
public record RolloutArrival(SampleName name, Rollout rollout, Record<byte[], byte[]> raw, long offset)
        implements Arrival {

    @Override
    public JoinSide kind() {
        return JoinSide.ROLLOUT;
    }

    /** Whether it was refused before and redriven: nothing that the join remembers of its first coming is about it. */
    public boolean isRedriven() {
        return RedriveMark.isRedriven(raw.headers());
    }

    /** Newest version that sampled one of its tokens. */
    public long newestVersion() {
        long newest = -1;
        for (VersionSpan span : rollout.getVersionSpans()) {
            newest = Math.max(newest, span.getVersion());
        }
        return newest;
    }
}
