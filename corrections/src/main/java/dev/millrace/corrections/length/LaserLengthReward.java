package dev.millrace.corrections.length;

import dev.millrace.corrections.TokenBatch;

/**
 * A bonus for correct answers within a target length: {@code r + bonus if correct and length <= target}.
 *
 * <p>Unit: sequence. Beyond the target nothing more is lost, and a wrong answer gains nothing by being short. LASER-D and
 * LASER-DE, which choose targets per difficulty from monitored prompts, are not implemented.
 *
 * <p>Source: Liu et al. 2025, LASER (arXiv 2505.15612), {@code compute_length_reward_larse} of its code.
 *
 * @param target longest answer with a bonus, in trained tokens; at least 1
 * @param bonus what such an answer earns; finite, not negative
 * @param correctAbove reward above which a sequence is correct; finite
 */
public record LaserLengthReward(int target, double bonus, double correctAbove) implements LengthPenalty {
    public LaserLengthReward {
        if (target < 1) {
            throw new IllegalArgumentException("target must be at least 1: " + target);
        }
        LengthPenaltyInput.requirePrice("bonus", bonus);
        LengthPenaltyInput.requireFinite("correct_above", correctAbove);
    }

    /** Half a reward up to 4,096 tokens, as published. */
    public static LaserLengthReward defaults() {
        return new LaserLengthReward(4096, 0.5, 0.5);
    }

    @Override
    public String name() {
        return "laser_length";
    }

    @Override
    public double[] perSequence(TokenBatch batch, boolean[] correct) {
        LengthPenaltyInput.requireVerdicts(batch, correct);
        double[] penalties = new double[correct.length];
        for (int s = 0; s < penalties.length; s++) {
            int length = batch.trainedTokens(s);
            if (correct[s] && length > 0 && length <= target) {
                penalties[s] = -bonus;
            }
        }
        return penalties;
    }
}
