package dev.millrace.policy.session;

import java.util.Arrays;

/** Kept tokens of each draw of a call: ragged, by step, then slot. */
final class StepKept {
    private final int[] starts;
    private final long[] ids;

    /** @param counts [steps, slots], 0 where nothing was drawn or recorded */
    StepKept(long[] counts, long[] ids) {
        this.starts = new int[counts.length + 1];
        for (int i = 0; i < counts.length; i++) {
            starts[i + 1] = starts[i] + (int) counts[i];
        }
        this.ids = ids;
    }

    int[] at(int index) {
        return Arrays.stream(ids, starts[index], starts[index + 1])
                .mapToInt(id -> (int) id)
                .toArray();
    }
}
