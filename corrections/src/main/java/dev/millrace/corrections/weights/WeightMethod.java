package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * A way to turn log ratios into one importance weight per token.
 *
 * <p>Weights are constants of the update: they are not differentiated. Implementations are immutable and thread-safe,
 * read trained tokens only, allocate nothing proportional to the tokens, and cost O(tokens).
 */
public interface WeightMethod {

    /** The unit whose tokens share one weight. */
    default CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    /**
     * Overwrites {@code weights}: the token's weight if trained, 0 if context.
     *
     * <p>A batch without trained tokens is answered with zeros and an empty summary.
     *
     * @param ratio which ratio is corrected for, one log ratio per packed token
     * @param weights one slot per packed token, the caller's
     * @return what was weighted and what was bounded
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming sequence and token; {@code weights} is then
     *     partly written
     * @throws IllegalArgumentException if an array has another length than the batch
     */
    WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights);
}
