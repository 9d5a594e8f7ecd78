package dev.millrace.corrections.length;

import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;

/**
 * A reward for being short among the answers to a prompt: {@code λ = 1/2 − (length − shortest) / (longest − shortest)},
 * a correct answer receives {@code weight · λ} and a wrong one {@code weight · min(0, λ)}.
 *
 * <p>Unit: sequence, against its group. Shortest and longest are taken over all answers with a trained token, right or wrong;
 * where they are equal, λ is 0. The range moves with the policy, which can shorten its answers until none is correct.
 *
 * <p>Source: Kimi Team 2025 (arXiv 2501.12599, section 2.3.3), which raises the weight from 0 over the first steps.
 *
 * @param weight reward between a group's shortest and longest correct answer; finite, not negative
 * @param correctAbove reward above which a sequence is correct; finite
 */
public record KimiLengthPenalty(double weight, double correctAbove) implements LengthPenalty {
    public KimiLengthPenalty {
        LengthPenaltyInput.requirePrice("weight", weight);
        LengthPenaltyInput.requireFinite("correct_above", correctAbove);
    }

    /** A tenth of a reward between the shortest and the longest correct answer. */
    public static KimiLengthPenalty defaults() {
        return new KimiLengthPenalty(0.1, 0.5);
    }

    @Override
    public String name() {
        return "kimi_length";
    }

    @Override
    public double[] perSequence(TokenBatch batch, boolean[] correct) {
        LengthPenaltyInput.requireVerdicts(batch, correct);
        int[] shortest = new int[batch.groupCount()];
        int[] longest = new int[batch.groupCount()];
        Arrays.fill(shortest, Integer.MAX_VALUE);
        for (int s = 0; s < correct.length; s++) {
            int length = batch.trainedTokens(s);
            if (length > 0) {
                shortest[batch.group(s)] = Math.min(shortest[batch.group(s)], length);
                longest[batch.group(s)] = Math.max(longest[batch.group(s)], length);
            }
        }
        double[] penalties = new double[correct.length];
        for (int s = 0; s < penalties.length; s++) {
            int range = longest[batch.group(s)] - shortest[batch.group(s)];
            if (batch.trainedTokens(s) > 0 && range > 0) {
                double excess = (double) (batch.trainedTokens(s) - shortest[batch.group(s)]) / range - 0.5;
                penalties[s] = weight * (correct[s] ? excess : Math.max(0, excess));
            }
        }
        return penalties;
    }
}
