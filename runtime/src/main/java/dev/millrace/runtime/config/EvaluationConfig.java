package dev.millrace.runtime.config;

/**
 * When the policy is evaluated on prompts that it is never trained on. {@code train} does it, beside the run's roles; roles that are started
 * one by one have nobody who does.
 *
 * @param everySteps steps between two evaluations; version 0 and the last version are evaluated besides; 0 evaluates none
 * @param responses of an evaluation, at least 1: one for each of so many held-out prompts, from the first again where there are fewer
 */
public record EvaluationConfig(int everySteps, int responses) {

    public EvaluationConfig {
        if (everySteps < 0) {
            throw new IllegalArgumentException("every_steps must be at least 0, and 0 evaluates none: " + everySteps);
        }
        if (responses < 1) {
            throw new IllegalArgumentException("responses must be at least 1: " + responses);
        }
    }

    /** None; where prompts of text are held out, every ten versions. */
    public static EvaluationConfig defaults() {
        return new EvaluationConfig(0, 64);
    }
}
