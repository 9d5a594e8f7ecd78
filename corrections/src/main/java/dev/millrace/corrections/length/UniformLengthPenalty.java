package dev.millrace.corrections.length;

import dev.millrace.corrections.TokenBatch;

/**
 * The same price for every token: {@code pricePerToken · length}, right or wrong, easy or hard.
 *
 * <p>Unit: sequence. It shortens everything, hard problems first, since they have the most to lose; a policy whose
 * correct answers are its long ones is pushed into short wrong ones. The other two penalties exist for that reason.
 */
public final class UniformLengthPenalty implements LengthPenalty {
    private final double pricePerToken;

    /** @param pricePerToken finite and not negative; 1e-4 makes 10 000 tokens cost one reward */
    public UniformLengthPenalty(double pricePerToken) {
        this.pricePerToken = LengthPenaltyInput.requirePrice("pricePerToken", pricePerToken);
    }

    @Override
    public double[] perSequence(TokenBatch batch, boolean[] correct) {
        LengthPenaltyInput.requireVerdicts(batch, correct);
        double[] penalties = new double[correct.length];
        for (int s = 0; s < penalties.length; s++) {
            penalties[s] = pricePerToken * batch.trainedTokens(s);
        }
        return penalties;
    }
}
