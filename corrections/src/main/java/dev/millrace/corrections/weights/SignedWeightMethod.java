package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * A way to turn log ratios into one weight per token that treats good and bad answers differently.
 *
 * <p>The update is {@code weight * advantage * gradient of the log-prob}, so the sign of the advantage says whether
 * the token is to become more or less likely. An advantage of 0 counts as positive; its update is 0 anyway. Otherwise
 * as {@link WeightMethod}.
 */
public interface SignedWeightMethod {

    /** The unit whose tokens share one weight. */
    CorrectionUnit unit();

    /**
     * Overwrites {@code weights}: the token's weight if trained, 0 if context.
     *
     * @param batch ragged batch
     * @param ratio the policy being differentiated over the one that sampled, one log ratio per packed token
     * @param advantages one per packed token; only the sign matters
     * @param weights one slot per packed token, the caller's
     * @return what was weighted and what was bounded
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming sequence and token of a log-prob or an
     *     advantage; {@code weights} is then partly written
     * @throws IllegalArgumentException if an array has another length than the batch
     */
    WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] advantages, float[] weights);
}
