package dev.millrace.replay;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;

/**
 * The tokens of a decided batch that move the weights at all: trained on, with a weight.
 *
 * @param zeroWeights tokens that are trained on without one
 * @param chiSquare mean squared ratio of proximal to behavior, minus 1; NaN if no token counts
 * @param gradientPower mean over the tokens that are trained on of (weight times advantage)² times (1 - probability)²; NaN of none
 */
record CountingTokens(long zeroWeights, double chiSquare, double gradientPower) {

    static CountingTokens of(StageFacts facts, Decision decision) {
        TokenBatch left = decision.left();
        float[] proximal = facts.vector(StageInput.PROXIMAL);
        float[] behavior = facts.vector(StageInput.BEHAVIOR);
        float[] advantages = decision.perToken();
        long counting = 0;
        double squares = 0;
        double power = 0;
        for (int t = 0; t < advantages.length; t++) {
            float weight = decision.weights()[t];
            if (left.isTrained(t) && weight != 0) {
                double force = weight * advantages[t] * -Math.expm1(proximal[t]);
                power += force * force;
                squares += Math.exp(2.0 * ((double) proximal[t] - behavior[t]));
                counting++;
            }
        }
        return new CountingTokens(
                left.trainedTokens() - counting, squares / counting - 1, power / left.trainedTokens());
    }
}
