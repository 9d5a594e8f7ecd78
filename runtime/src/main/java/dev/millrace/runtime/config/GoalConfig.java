package dev.millrace.runtime.config;

/**
 * When training is over; whichever comes first. A number of steps to end after is {@code learner.max_steps}.
 *
 * @param meanReward mean reward to reach; 0 for no such goal
 * @param overSteps steps over which the mean is taken
 * @param maxSeconds wall-clock of one invocation; 0 for no limit
 * @param exportModels whether {@code train} then writes the best and the last version as model directories, {@code models/best} and {@code
 *     models/last} of the run's folder; true where the run begins with a checkpoint, unless it is set
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

    /** A mean reward of 0.9 over ten steps, and no more than an hour. */
    public static GoalConfig defaults() {
        return new GoalConfig(0.9, 10, 3600, false);
    }
}
