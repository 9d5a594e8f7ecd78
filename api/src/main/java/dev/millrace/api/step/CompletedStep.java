package dev.millrace.api.step;

import java.util.Map;

/**
 * A completed step.
 *
 * @param batchId batch of the step
 * @param version made by the step; unchanged for a starved batch without a token to train on
 * @param numbers figures for the training log, by name; absent if not computed
 */
public record CompletedStep(long batchId, long version, Map<String, Double> numbers) {

    public CompletedStep {
        numbers = Map.copyOf(numbers);
    }
}
