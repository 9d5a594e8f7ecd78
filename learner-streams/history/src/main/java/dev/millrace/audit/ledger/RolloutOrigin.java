package dev.millrace.audit.ledger;

import java.util.Comparator;

/**
 * Epoch and newest sampling version of a rollout.
 *
 * @param epoch at least 0; -1 in {@link #NOT_OURS}
 * @param version at least 0; -1 in {@link #NOT_OURS}
 */
public record RolloutOrigin(int epoch, long version) implements Comparable<RolloutOrigin> {
    /** Of a record that is unreadable or of another run. */
    public static final RolloutOrigin NOT_OURS = new RolloutOrigin(-1, -1);

    private static final Comparator<RolloutOrigin> ORDER =
            Comparator.comparingInt(RolloutOrigin::epoch).thenComparingLong(RolloutOrigin::version);

    @Override
    public int compareTo(RolloutOrigin other) {
        return ORDER.compare(this, other);
    }
}
