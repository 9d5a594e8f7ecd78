package dev.millrace.stages;

import dev.millrace.corrections.advantage.Grpo;

/**
 * Advantages of a group's samples.
 *
 * @param divideByStd whether the reward's distance from the group's mean is divided by the group's standard deviation
 */
public record AdvantageConfig(boolean divideByStd) {

    /** Reward minus the group's mean. */
    public static AdvantageConfig defaults() {
        return new AdvantageConfig(false);
    }

    /** The mathematics. */
    public Grpo estimator() {
        return new Grpo(divideByStd);
    }
}
