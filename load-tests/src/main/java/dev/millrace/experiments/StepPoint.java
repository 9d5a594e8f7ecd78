package dev.millrace.experiments;

import org.jspecify.annotations.Nullable;

/**
 * One optimiser step as the experiment sees it. Everything about drift is of all sampled tokens, before any mask, and
 * the same quantity for every correction.
 *
 * @param step            counted from the warm start, from 0; also the version that was current when it began
 * @param behaviorVersion the oldest version that sampled a token of the batch, as the rollouts record it
 * @param staleness       versions behind, mean over the batch's tokens, as the corrections count it
 * @param reward          mean reward of the batch, which is the behavior policy's
 * @param essRatio        effective sample size of the raw sequence weights current/behavior, over the sequences
 * @param secondMoment    mean squared token log ratio current/behavior
 * @param kl              mean of log behavior − log current: an estimate of KL(behavior ‖ current) per token
 * @param maskedFraction  sampled tokens that no gradient came from, because a stage masked them or weighed them 0
 * @param clipFraction    trained tokens whose objective was clipped
 * @param stepScale       factor on the learning rate
 * @param gradNorm        L2 norm of the gradient before its clipping; 0 if there was nothing to train on
 * @param entropy         mean token entropy of the current policy over trained tokens; 0 likewise
 * @param starved         whether no token was left to train on; null in the file of a run that did not record it
 */
record StepPoint(
        long step,
        long behaviorVersion,
        double staleness,
        double reward,
        double essRatio,
        double secondMoment,
        double kl,
        double maskedFraction,
        double clipFraction,
        double stepScale,
        double gradNorm,
        double entropy,
        @Nullable Boolean starved) {

    /**
     * The current policy on prompts that are the same at every evaluation and never trained on.
     *
     * @param step     steps taken before it
     * @param reward   mean reward at temperature 1
     * @param accuracy share of answers that are right throughout
     */
    public record Evaluation(long step, double reward, double accuracy) {}
}
