package dev.millrace.ledger;

import java.util.Comparator;

/**
 * Where a rollout comes from: the epoch of the run, and the newest policy version that sampled one of its tokens.
 *
 * @param epoch at least 0; -1 in {@link #NOT_OURS}
 * @param version at least 0; -1 in {@link #NOT_OURS}
 */
public record Origin(int epoch, long version) implements Comparable<Origin> {
    /** Of a record on the rollouts topic that cannot be read as a rollout, or is of another run. */
    public static final Origin NOT_OURS = new Origin(-1, -1);

    private static final Comparator<Origin> ORDER =
            Comparator.comparingInt(Origin::epoch).thenComparingLong(Origin::version);

    @Override
    public int compareTo(Origin other) {
        return ORDER.compare(this, other);
    }
}
