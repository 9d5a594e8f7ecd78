package dev.millrace.learner.objective;

import dev.millrace.corrections.control.ControlState;
import dev.millrace.corrections.objective.GlobalBatch;

/**
 * What an update's loss may depend on besides log-probs.
 *
 * @param optimizerSteps      steps taken before; seeds what is drawn at random, so that a repeated step draws the same
 * @param tokensBeforeMasking tokens of the minibatch before the second-moment mask; at least the trained ones
 * @param trainedTokens       tokens of the minibatch that are trained on
 * @param sequences           sequences of the minibatch
 * @param controls            what the updates before have left to be remembered
 */
public record UpdateFacts(
        long optimizerSteps, long tokensBeforeMasking, long trainedTokens, long sequences, ControlState controls) {

    /** The minibatch as it is before an objective's own rejections. */
    GlobalBatch beforeRejection() {
        return new GlobalBatch(trainedTokens, sequences, 1);
    }

    /** The minibatch as it was before the second-moment mask. */
    GlobalBatch beforeMasking() {
        return new GlobalBatch(tokensBeforeMasking, sequences, 1);
    }
}
