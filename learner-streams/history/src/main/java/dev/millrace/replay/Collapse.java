package dev.millrace.replay;

import java.util.OptionalInt;

/**
 * A series of evaluations collapsed if the reward fell below half of the earlier best for at least its last {@value
 * #STAYS} evaluations.
 */
public final class Collapse {
    /** Evaluations at the end that must lie below half. */
    public static final int STAYS = 4;

    private Collapse() {}

    /** First evaluation of the fall; empty without a collapse. */
    public static OptionalInt at(double[] rewards) {
        double best = 0;
        int below = 0; // evaluations in a row, up to this one, below half of the best before
        for (double reward : rewards) {
            below = reward < best / 2 ? below + 1 : 0;
            best = Math.max(best, reward);
        }
        return below >= STAYS ? OptionalInt.of(rewards.length - below) : OptionalInt.empty();
    }
}
