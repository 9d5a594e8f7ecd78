package dev.millrace.api.step;

import java.util.Map;

/**
 * A step that was made.
 *
 * @param batchId over which
 * @param version of the weights that it made; of a starved batch, of which no token was left, the one that stays
 * @param numbers what the training log will say of it, by name; what was not computed is absent
 */
public record MadeStep(long batchId, long version, Map<String, Double> numbers) {

    public MadeStep {
        numbers = Map.copyOf(numbers);
    }
}
