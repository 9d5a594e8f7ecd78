package dev.millrace.workloads;

/**
 * The search for the rate beyond which the system no longer follows.
 *
 * @param search whether it is searched for, from {@code load.rollouts_per_second} upwards
 * @param points rates that are tried at most, 3 to 32
 */
public record KneePlan(boolean search, int points) {
    public KneePlan {
        if (points < 3 || points > 32) {
            throw new IllegalArgumentException("points must be 3 to 32: " + points);
        }
    }

    /** Not searched for. */
    public static KneePlan defaults() {
        return new KneePlan(false, 8);
    }
}
