package dev.millrace.experiments;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import org.jspecify.annotations.Nullable;

/**
 * One optimizer step. Drift covers all sampled tokens before any mask.
 *
 * @param step from 0 after the warm start; also the current version at its start
 * @param behaviorVersion oldest version that sampled a token of the batch
 * @param staleness mean versions behind over the batch's tokens
 * @param reward mean of the batch
 */
record StepPoint(
        long step,
        long behaviorVersion,
        double staleness,
        double reward,
        @JsonUnwrapped Drift drift,
        @JsonUnwrapped Update update) {

    /**
     * Drift of current from behavior.
     *
     * @param essRatio of raw sequence weights current/behavior
     * @param secondMoment mean squared token log ratio current/behavior
     * @param kl estimate of KL(behavior ‖ current) per token
     * @param tv estimate of the total variation of behavior and current per token
     * @param chiSquare estimate of χ²(current ‖ behavior) per token
     */
    record Drift(double essRatio, double secondMoment, double kl, double tv, double chiSquare) {}

    /**
     * An update.
     *
     * @param maskedFraction sampled tokens masked or weighed 0
     * @param clipFraction trained tokens with a clipped objective
     * @param stepScale factor on the learning rate
     * @param gradNorm L2 norm before clipping; 0 without tokens
     * @param entropy mean token entropy of the current policy; 0 without tokens
     * @param starved no token was left; null if not recorded
     */
    record Update(
            double maskedFraction,
            double clipFraction,
            double stepScale,
            double gradNorm,
            double entropy,
            @Nullable Boolean starved) {}

    /**
     * The current policy on fixed held-out prompts.
     *
     * @param reward mean at temperature 1
     */
    public record Evaluation(long step, double reward, double accuracy) {}
}
