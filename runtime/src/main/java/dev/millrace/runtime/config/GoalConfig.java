package dev.millrace.runtime.config;

/**
 * When training ends: at the reward or the time limit, whichever is reached first. {@code learner.max_steps} limits the
 * steps.
 *
 * @param meanReward mean reward to reach; 0 for none
 * @param overSteps steps of the mean
 * @param maxSeconds longest wall-clock time; 0 for no limit
 * @param exportModels write {@code models/best} and {@code models/last} at the end; true for runs from a checkpoint
 *     unless set
 */
public record GoalConfig(double meanReward, int overSteps, double maxSeconds, boolean exportModels) {
    public GoalConfig {
        if (!(meanReward >= 0)) {
            throw new IllegalArgumentException("mean_reward must be at least 0: " + meanReward);
        }
        if (overSteps < 1) {
            throw new IllegalArgumentException("over_steps must be at least 1: " + overSteps);
        }
        if (!(maxSeconds >= 0)) {
            throw new IllegalArgumentException("max_seconds must be at least 0: " + maxSeconds);
        }
    }

    /** A mean reward of 0.9 over ten steps, within an hour. */
    public static GoalConfig defaults() {
        return new GoalConfig(0.9, 10, 3600, false);
    }
}
