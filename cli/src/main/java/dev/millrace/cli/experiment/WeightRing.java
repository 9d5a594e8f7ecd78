package dev.millrace.cli.experiment;

import dev.millrace.policy.weights.Weights;

/** The newest {@code lag + 1} versions of the weights, each a copy of its own. Not thread-safe. */
final class WeightRing {
    private final Weights[] kept;
    private long newest = -1;

    WeightRing(int lag) {
        this.kept = new Weights[lag + 1];
    }

    /** Keeps a copy of the next version, in the place of the oldest. */
    void add(Weights weights) {
        newest++;
        int place = place(newest);
        if (kept[place] == null) {
            kept[place] = weights.copy();
        } else {
            kept[place].copyFrom(weights);
        }
    }

    /** The newest version; versions count from 0. */
    long newest() {
        return newest;
    }

    /** The weights of a version that is still kept; not to be written to. */
    Weights at(long version) {
        if (version < 0 || version > newest || version <= newest - kept.length) {
            throw new IllegalArgumentException("version " + version + " is not kept: the ring holds "
                + Math.max(0, newest - kept.length + 1) + " to " + newest);
        }
        return kept[place(version)];
    }

    private int place(long version) {
        return (int) (version % kept.length);
    }
}
