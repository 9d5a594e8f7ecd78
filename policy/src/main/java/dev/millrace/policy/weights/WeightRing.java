package dev.millrace.policy.weights;

import org.jspecify.annotations.Nullable;

/** The newest {@code lag + 1} versions of the weights of one learner, each a copy of its own. Not thread-safe. */
public final class WeightRing {
    private final @Nullable Weights[] kept;
    private final long first;
    private long newest;

    /**
     * An empty ring.
     *
     * @param lag versions behind the newest that are kept, at least 0
     * @param first version that is added first
     */
    public WeightRing(int lag, long first) {
        if (lag < 0) {
            throw new IllegalArgumentException("a lag must be at least 0: " + lag);
        }
        this.kept = new @Nullable Weights[lag + 1];
        this.first = first;
        this.newest = first - 1;
    }

    /** Keeps a copy of the next version, in the place of the oldest. */
    public void add(Weights weights) {
        newest++;
        int place = place(newest);
        if (kept[place] == null) {
            kept[place] = weights.copy();
        } else {
            kept[place].copyFrom(weights);
        }
    }

    /** The newest version; one less than the first as long as there is none. */
    public long newest() {
        return newest;
    }

    /** The weights of a version that is still kept; not to be written to, and of another version after {@code lag + 1} more. */
    public Weights at(long version) {
        if (version < first || version > newest || version <= newest - kept.length) {
            throw new IllegalArgumentException("version " + version + " is not kept: the ring holds "
                    + Math.max(first, newest - kept.length + 1) + " to " + newest);
        }
        return kept[place(version)];
    }

    private int place(long version) {
        return (int) ((version - first) % kept.length);
    }
}
