package dev.millrace.corrections.length;

import dev.millrace.corrections.TokenBatch;

/**
 * A price that follows the group's solve rate: {@code pricePerToken · length · max(solve rate, 1 / group size)}.
 *
 * <p>Unit: sequence, priced by its group. What the policy solves every time it should solve briefly; what it rarely
 * solves may take as long as it takes. The floor keeps unsolved problems from being free.
 *
 * <p>Source: Xiang et al. 2025, adaptive length penalty (arXiv 2506.05256).
 */
public final class GroupAdaptiveLengthPenalty implements LengthPenalty {
    private final double pricePerToken;

    /** @param pricePerToken of a group that is always solved; finite and not negative */
    public GroupAdaptiveLengthPenalty(double pricePerToken) {
        this.pricePerToken = LengthPenaltyInput.requirePrice("pricePerToken", pricePerToken);
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
