package dev.millrace.corrections.stage;

import dev.millrace.corrections.CorrectionUnit;
import java.util.Collections;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * On how much a stage acted.
 *
 * @param unit what got one verdict as a whole
 * @param tokensSeen trained tokens before it
 * @param tokensActed of them: masked, truncated, damped, given an advantage that is not 0, as the stage's kind goes
 * @param sequencesSeen sequences with a trained token before it
 * @param sequencesActed of them: those with a token that was acted on
 * @param values its settings and what else it measured, by name; a figure that is not finite is left out
 */
public record StageOutcome(
        String stage,
        CorrectionUnit unit,
        long tokensSeen,
        long tokensActed,
        long sequencesSeen,
        long sequencesActed,
        SortedMap<String, Double> values) {

    public StageOutcome {
        values = new TreeMap<>(values);
        values.values().removeIf(value -> !Double.isFinite(value));
        values = Collections.unmodifiableSortedMap(values);
    }
}
