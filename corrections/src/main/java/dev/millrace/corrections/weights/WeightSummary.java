package dev.millrace.corrections.weights;

/**
 * What a weight method did to a batch; publish it next to the loss, since every bound is a bias.
 *
 * @param trainedTokens tokens that received a weight
 * @param truncatedTokens trained tokens whose weight was moved onto a bound
 * @param maskedTokens trained tokens whose weight was set to 0 for lying outside a band
 * @param trainedSequences sequences with at least one trained token
 * @param changedSequences sequences with at least one truncated or masked token
 * @param weight of a trained token
 */
public record WeightSummary(
        int trainedTokens,
        int truncatedTokens,
        int maskedTokens,
        int trainedSequences,
        int changedSequences,
        Range weight) {

    /** Mean and bounds, 0 of no tokens. */
    public record Range(double mean, double min, double max) {}

    /** Truncated and masked tokens over trained tokens, 0 if there are none. */
    public double changedFraction() {
        return trainedTokens == 0 ? 0.0 : (truncatedTokens + maskedTokens) / (double) trainedTokens;
    }
}
