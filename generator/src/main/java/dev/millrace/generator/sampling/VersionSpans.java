package dev.millrace.generator.sampling;

import dev.millrace.schemas.VersionSpan;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;

/**
 * Which policy version wrote which response positions, kept as a rollout grows.
 *
 * <p>Most rollouts have one span, those that were in flight when weights were swapped two, rarely more.
 */
final class VersionSpans {
    private long[] versions = new long[2];
    private int[] starts = new int[2];
    private int count;

    /** Position {@code position} is by {@code version}; positions come in order and without gaps. */
    void extend(int position, long version) {
        if (count > 0 && versions[count - 1] == version) {
            return;
        }
        if (count == versions.length) {
            versions = Arrays.copyOf(versions, 2 * count);
            starts = Arrays.copyOf(starts, 2 * count);
        }
        versions[count] = version;
        starts[count] = position;
        count++;
    }

    /** The version of the newest position; what the environment says belongs to the span it answers. */
    long latest() {
        return versions[count - 1];
    }

    /** The version of the oldest position; empty before the first. */
    OptionalLong oldest() { // versions only grow: nobody takes up an older one
        return count == 0 ? OptionalLong.empty() : OptionalLong.of(versions[0]);
    }

    /** As records over a response of {@code length} tokens. */
    List<VersionSpan> toRecords(int length) {
        List<VersionSpan> spans = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            spans.add(new VersionSpan(versions[i], starts[i], i + 1 < count ? starts[i + 1] : length));
        }
        return spans;
    }
}
