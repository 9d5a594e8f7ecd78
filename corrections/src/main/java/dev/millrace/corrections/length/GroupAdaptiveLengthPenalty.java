package dev.millrace.corrections.length;

import dev.millrace.corrections.TokenBatch;

/**
 * A price that follows the group's solve rate: {@code pricePerToken · length · max(solve rate, 1 / group size)}.
 *
 * <p>Unit: sequence, priced by its group. What the policy solves every time it should solve briefly; what it rarely
 * solves may take as long as it takes. The floor keeps unsolved problems from being free.
 *
 * <p>Source: Xiang et al. 2025, adaptive length penalty (arXiv 2506.05256).
 *
 * @param pricePerToken price of a token in a group that is always solved, finite, not negative
 * @param correctAbove reward above which a sequence is correct; finite
 */
public record GroupAdaptiveLengthPenalty(double pricePerToken, double correctAbove) implements LengthPenalty {
    public GroupAdaptiveLengthPenalty {
        LengthPenaltyInput.requirePrice("price_per_token", pricePerToken);
        LengthPenaltyInput.requireFinite("correct_above", correctAbove);
    }

    /** Correct is what is rewarded with more than a half. */
    public GroupAdaptiveLengthPenalty(double pricePerToken) {
        this(pricePerToken, 0.5);
    }

    /** A tenth of a reward for a thousand tokens of what is always solved. */
    public static GroupAdaptiveLengthPenalty defaults() {
        return new GroupAdaptiveLengthPenalty(1e-4);
    }

    @Override
    public String name() {
        return "group_adaptive_length";
    }

    @Override
    public double[] perSequence(TokenBatch batch, boolean[] correct) {
        LengthPenaltyInput.requireVerdicts(batch, correct);
        int[] sizes = new int[batch.groupCount()];
        int[] solved = new int[batch.groupCount()];
        for (int s = 0; s < correct.length; s++) {
            sizes[batch.group(s)]++;
            solved[batch.group(s)] += correct[s] ? 1 : 0;
        }
        double[] penalties = new double[correct.length];
        for (int s = 0; s < penalties.length; s++) {
            int group = batch.group(s);
            double rate = (double) Math.max(1, solved[group]) / sizes[group];
            penalties[s] = pricePerToken * batch.trainedTokens(s) * rate;
        }
        return penalties;
    }
}
