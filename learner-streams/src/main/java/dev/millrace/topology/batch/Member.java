package dev.millrace.topology.batch;

import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.stages.PolicyLogProbs;
import java.util.List;

/**
 * What the assembly of batches needs of one trajectory: its place, its reward, and one element per token of what the
 * corrections read. Holds copies, so that the rest of the trajectory can go.
 *
 * @param offset of the trajectory
 * @param rolloutSource the rollout's record
 * @param timestampMs when the trajectory was complete
 * @param finishedAtMs when its last token was sampled
 * @param mask the trajectory's own; not to be written to
 */
record Member(String rolloutId, String groupId, long ordinal, int sampleIndex, int groupSize, int partition, long offset,
    LogCoordinates rolloutSource, long timestampMs, long finishedAtMs, double reward, List<VersionSpan> spans, long proximalVersion, byte[] mask,
    PolicyLogProbs logProbs) {

    static Member of(Trajectory trajectory, int partition, long offset, long timestampMs) {
        return new Member(trajectory.getRolloutId(), trajectory.getGroupId(), trajectory.getOrdinal(),
            trajectory.getSampleIndex(), trajectory.getGroupSize(), partition, offset, trajectory.getRolloutSource(), timestampMs,
            trajectory.getFinishedAtMs(), trajectory.getReward(),
            trajectory.getVersionSpans().stream().map(s -> new VersionSpan(s.getVersion(), s.getStart(), s.getEnd())).toList(),
            trajectory.getProximalVersion(), PackedMask.toArray(trajectory.getMask()),
            new PolicyLogProbs(PackedFloats.toArray(trajectory.getBehaviorLogProbs()),
                PackedFloats.toArray(trajectory.getOldLogProbs()), PackedFloats.toArray(trajectory.getProximalLogProbs())));
    }

    /** Tokens that its own mask leaves to train on. */
    int trainableTokens() {
        int trainable = 0;
        for (byte value : mask) {
            trainable += value;
        }
        return trainable;
    }

    int tokens() {
        return mask.length;
    }

    /** Oldest version that sampled one of its tokens. */
    long oldestVersion() {
        return spans.stream().mapToLong(VersionSpan::version).min().orElseThrow();
    }

    /** Newest version that sampled one of its tokens. */
    long newestVersion() {
        return spans.stream().mapToLong(VersionSpan::version).max().orElseThrow();
    }
}
