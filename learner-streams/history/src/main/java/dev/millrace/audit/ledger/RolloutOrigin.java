package dev.millrace.audit.ledger;

import java.util.Comparator;

/**
 * Where a rollout comes from: the epoch of the run, and the newest policy version that sampled one of its tokens.
 *
 * @param epoch at least 0; -1 in {@link #NOT_OURS}
 * @param version at least 0; -1 in {@link #NOT_OURS}
 */
public record RolloutOrigin(int epoch, long version) implements Comparable<RolloutOrigin> {
    /** Of a record on the rollouts topic that cannot be read as a rollout, or is of another run. */
    public static final RolloutOrigin NOT_OURS = new RolloutOrigin(-1, -1);

    private static final Comparator<RolloutOrigin> ORDER =
            Comparator.comparingInt(RolloutOrigin::epoch).thenComparingLong(RolloutOrigin::version);

    @Override
    public int compareTo(RolloutOrigin other) {
        return ORDER.compare(this, other);
    }
}
