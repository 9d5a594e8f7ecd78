package dev.millrace.api.step;

import java.util.Map;

/**
 * A step that was made.
 *
 * @param batchId over which
 * @param version of the weights that it made; for a starved batch, without a token to train on, the unchanged version
 * @param numbers figures for the training log, by name; absent if not computed
 */
public record MadeStep(long batchId, long version, Map<String, Double> numbers) {

    public MadeStep {
        numbers = Map.copyOf(numbers);
    }
}
