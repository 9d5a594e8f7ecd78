package dev.millrace.topology.batch;

import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedMask;
import java.util.Arrays;
import java.util.List;

/**
 * What the assembly remembers of one trajectory: its place, its reward, and sums over its tokens. What it has one of per
 * token is in {@link MemberVectors}, which may have to be read again. About 300 bytes.
 *
 * @param offset of the trajectory
 * @param rolloutSource the rollout's record
 * @param timestampMs when the trajectory was complete
 * @param finishedAtMs when its last token was sampled
 * @param tokens of the response
 * @param trainable by version span: tokens that its own mask leaves to train on; not to be written to
 */
record Member(
        String rolloutId,
        String groupId,
        long ordinal,
        int sampleIndex,
        int groupSize,
        int partition,
        long offset,
        LogCoordinates rolloutSource,
        long timestampMs,
        long finishedAtMs,
        double reward,
        List<VersionSpan> spans,
        long proximalVersion,
        int tokens,
        int[] trainable) {

    static Member of(Trajectory trajectory, int partition, long offset, long timestampMs) {
        List<VersionSpan> spans = trajectory.getVersionSpans().stream()
                .map(s -> new VersionSpan(s.getVersion(), s.getStart(), s.getEnd()))
                .toList();
        byte[] mask = PackedMask.toArray(trajectory.getMask());
        int[] trainable = new int[spans.size()];
        for (int i = 0; i < trainable.length; i++) {
            for (int t = spans.get(i).start(); t < spans.get(i).end(); t++) {
                trainable[i] += mask[t];
            }
        }
        return new Member(
                trajectory.getRolloutId(),
                trajectory.getGroupId(),
                trajectory.getOrdinal(),
                trajectory.getSampleIndex(),
                trajectory.getGroupSize(),
                partition,
                offset,
                trajectory.getRolloutSource(),
                timestampMs,
                trajectory.getFinishedAtMs(),
                trajectory.getReward(),
                spans,
                trajectory.getProximalVersion(),
                mask.length,
                trainable);
    }

    /** Tokens that its own mask leaves to train on. */
    int trainableTokens() {
        return Arrays.stream(trainable).sum();
    }

    /** Those of them that were sampled by a version older than this. */
    int trainableTokensBefore(long version) {
        int older = 0;
        for (int i = 0; i < trainable.length; i++) {
            older += spans.get(i).version() < version ? trainable[i] : 0;
        }
        return older;
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
