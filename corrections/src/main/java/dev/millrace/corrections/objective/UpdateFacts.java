package dev.millrace.corrections.objective;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.ControlState;

/**
 * Inputs of an update's loss other than log-probs and the objective's own settings.
 *
 * @param aggregation how token losses become one number
 * @param whole the denominator: the minibatch before an objective's own rejections, and before trust region masks
 * @param tokensBeforeMasking tokens of the minibatch before the second-moment mask, the denominator of M2PO; at least
 *     the trained ones, or {@link GlobalBatch#OF_THIS_BATCH}
 * @param optimizerSteps steps taken before; seeds what is drawn at random, so that a repeated step draws the same
 */
public record UpdateFacts(
        LossAggregation aggregation,
        GlobalBatch whole,
        long tokensBeforeMasking,
        long optimizerSteps,
        ControlState controls) {

    /** The batch at hand is the whole, nothing was masked before, and no step was taken. */
    public static UpdateFacts of(LossAggregation aggregation) {
        return of(aggregation, GlobalBatch.WHOLE);
    }

    /** The same for a batch that is a part of a whole. */
    public static UpdateFacts of(LossAggregation aggregation, GlobalBatch whole) {
        return new UpdateFacts(aggregation, whole, (long) whole.tokens(), 0, ControlState.initial());
    }

    /** The same after other numbers of optimizer steps. */
    public UpdateFacts after(long steps) {
        return new UpdateFacts(aggregation, whole, tokensBeforeMasking, steps, controls);
    }

    /** What a token's loss counts, one coefficient per sequence. */
    public double[] coefficients(TokenBatch batch) {
        return aggregation.coefficients(batch, whole);
    }

    /** The same divided by the tokens that there were before the second-moment mask. */
    double[] coefficientsBeforeMasking(TokenBatch batch) {
        return aggregation.coefficients(batch, new GlobalBatch(tokensBeforeMasking, whole.sequences(), whole.shards()));
    }
}
