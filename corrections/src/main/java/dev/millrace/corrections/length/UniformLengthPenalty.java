package dev.millrace.corrections.length;

import dev.millrace.corrections.TokenBatch;

/**
 * The same price for every token: {@code pricePerToken · length}, right or wrong, easy or hard.
 *
 * <p>Unit: sequence. Source: definition.
 *
 * <p>It shortens everything, hard problems first, since they have the most to lose; a policy whose
 * correct answers are its long ones is pushed into short wrong ones. The other two penalties exist for that reason.
 *
 * @param pricePerToken price of a token, finite, not negative
 * @param correctAbove reward above which a sequence is correct; finite
 */
public record UniformLengthPenalty(double pricePerToken, double correctAbove) implements LengthPenalty {
    public UniformLengthPenalty {
        LengthPenaltyInput.requirePrice("price_per_token", pricePerToken);
        LengthPenaltyInput.requireFinite("correct_above", correctAbove);
    }

    /** Correct is what is rewarded with more than a half. */
    public UniformLengthPenalty(double pricePerToken) {
        this(pricePerToken, 0.5);
    }

    /** A tenth of a reward for a thousand tokens. */
    public static UniformLengthPenalty defaults() {
        return new UniformLengthPenalty(1e-4);
    }

    @Override
    public String name() {
        return "uniform_length";
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
