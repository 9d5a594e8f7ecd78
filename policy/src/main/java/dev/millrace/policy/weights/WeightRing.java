package dev.millrace.policy.weights;

import org.jspecify.annotations.Nullable;

/** Copies of the newest {@code lag + 1} versions of one learner's weights. Not thread-safe. */
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

    /** Stores a copy of the next version over the oldest. */
    public void add(Weights weights) {
        newest++;
        int place = place(newest);
        if (kept[place] == null) {
            kept[place] = weights.copy();
        } else {
            kept[place].copyFrom(weights);
        }
    }

    /** The newest version; one less than the first before any was added. */
    public long newest() {
        return newest;
    }

    /**
     * The weights of a version that is still kept; read-only, and overwritten after {@code lag + 1} further versions.
     */
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
