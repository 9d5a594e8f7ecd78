package dev.millrace.experiments;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.vcpo.EffectiveSampleSize;
import dev.millrace.corrections.vcpo.SequenceLogWeights;
import dev.millrace.replay.ScoredRollouts;
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
     * Drift of the current policy from the sampler over all sampled tokens, masked or not.
     *
     * @param essRatio {@code (Σ w)² / (n Σ w²)} of raw sequence weights current/behavior
     * @param secondMoment mean of {@code (log ρ)²} per token
     * @param kl mean of {@code -log ρ} per token
     * @param tv mean of {@code |ρ - 1| / 2}: estimates the total variation from behavior per token
     * @param chiSquare mean of {@code ρ²}, less 1: estimates the χ² divergence from behavior per token
     */
    record Drift(double essRatio, double secondMoment, double kl, double tv, double chiSquare) {

        static Drift of(ScoredRollouts scored) {
            TokenBatch tokens = scored.tokens();
            LogRatio ratio = LogRatio.anchor(scored.current(), scored.behavior());
            double squares = 0;
            double sum = 0;
            double distance = 0;
            double power = 0;
            for (int s = 0; s < tokens.sequenceCount(); s++) {
                for (int t = tokens.start(s); t < tokens.end(s); t++) {
                    if (tokens.isTrained(t)) {
                        double logRatio = ratio.finiteAt(tokens, s, t);
                        squares += logRatio * logRatio;
                        sum += logRatio;
                        distance += Math.abs(Math.expm1(logRatio));
                        power += Math.expm1(2 * logRatio);
                    }
                }
            }
            return new Drift(
                    EffectiveSampleSize.ofRaw(SequenceLogWeights.ofTrainedSequences(tokens, ratio))
                            .ratio(),
                    squares / tokens.trainedTokens(),
                    -sum / tokens.trainedTokens(),
                    distance / 2 / tokens.trainedTokens(),
                    power / tokens.trainedTokens());
        }
    }

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
