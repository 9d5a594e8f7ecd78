package dev.millrace.topology.batch;

import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedMask;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;

/**
 * What the assembly remembers of one trajectory: its place, its reward, and sums over its tokens. What it has one of per
 * token is in {@link MemberVectors}, which may have to be read again. About 300 bytes.
 *
 * @param timestampMs when the trajectory was complete
 * @param finishedAtMs when its last token was sampled
 * @param tokens of the response
 */
record Member(
        Sample sample, Place place, long timestampMs, long finishedAtMs, double reward, Versions versions, int tokens) {

    /** Identity of a sample within its group. */
    record Sample(String rolloutId, String groupId, long ordinal, int index, int groupSize) {}

    /**
     * Where it is on the log.
     *
     * @param offset of the trajectory
     * @param rollout the rollout's record
     */
    record Place(int partition, long offset, LogCoordinates rollout) {}

    /**
     * Whose tokens it has.
     *
     * @param trainable by version span: tokens that its own mask leaves to train on; not to be written to
     */
    record Versions(List<VersionSpan> spans, long proximal, int[] trainable) {}

    static Member of(Trajectory trajectory, int partition, long offset, long timestampMs) {
        List<VersionSpan> spans = trajectory.getVersionSpans().stream()
                .map(s -> new VersionSpan(s.getVersion(), s.getStart(), s.getEnd()))
                .toList();
        ByteBuffer mask = trajectory.getMask();
        int[] trainable = new int[spans.size()];
        for (int i = 0; i < trainable.length; i++) {
            for (int t = spans.get(i).start(); t < spans.get(i).end(); t++) {
                trainable[i] += mask.get(mask.position() + t);
            }
        }
        return new Member(
                new Sample(
                        trajectory.getRolloutId(),
                        trajectory.getGroupId(),
                        trajectory.getOrdinal(),
                        trajectory.getSampleIndex(),
                        trajectory.getGroupSize()),
                new Place(partition, offset, trajectory.getRolloutSource()),
                timestampMs,
                trajectory.getFinishedAtMs(),
                trajectory.getReward(),
                new Versions(spans, trajectory.getProximalVersion(), trainable),
                PackedMask.length(mask));
    }

    /** Tokens that its own mask leaves to train on. */
    int trainableTokens() {
        return Arrays.stream(versions.trainable).sum();
    }

    /** Those of them that were sampled by a version older than this. */
    int trainableTokensBefore(long version) {
        int older = 0;
        for (int i = 0; i < versions.trainable.length; i++) {
            older += versions.spans.get(i).version() < version ? versions.trainable[i] : 0;
        }
        return older;
    }

    /** Oldest version that sampled one of its tokens. */
    long oldestVersion() {
        return versions.spans.stream().mapToLong(VersionSpan::version).min().orElseThrow();
    }

    /** Newest version that sampled one of its tokens. */
    long newestVersion() {
        long newest = versions.spans.get(0).version(); // no stream: asked of a whole group for every arrival
        for (VersionSpan span : versions.spans) {
            newest = Math.max(newest, span.version());
        }
        return newest;
    }
}
