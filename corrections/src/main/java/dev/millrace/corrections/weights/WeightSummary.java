package dev.millrace.corrections.weights;

/**
 * What a weight method did to a batch; publish it next to the loss, since every bound is a bias.
 *
 * @param trainedTokens tokens that received a weight
 * @param truncatedTokens trained tokens whose weight was moved onto a bound
 * @param maskedTokens trained tokens whose weight was set to 0 for lying outside a band
 * @param trainedSequences sequences with at least one trained token
 * @param changedSequences sequences with at least one truncated or masked token
 * @param meanWeight mean over trained tokens, 0 if there are none
 * @param minWeight smallest weight of a trained token, 0 if there are none
 * @param maxWeight largest weight of a trained token, 0 if there are none
 */
public record WeightSummary(
        int trainedTokens,
        int truncatedTokens,
        int maskedTokens,
        int trainedSequences,
        int changedSequences,
        double meanWeight,
        double minWeight,
        double maxWeight) {

    /** Truncated and masked tokens over trained tokens, 0 if there are none. */
    public double changedFraction() {
        return trainedTokens == 0 ? 0.0 : (truncatedTokens + maskedTokens) / (double) trainedTokens;
    }
}
