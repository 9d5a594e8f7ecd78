package dev.millrace.corrections.weights;

/**
 * What a weight method did to a batch; publish it next to the loss, since every bound is a bias.
 *
 * @param trainedTokens tokens that received a weight
 * @param truncatedTokens trained tokens whose weight was moved onto a bound
 * @param maskedTokens trained tokens whose weight was set to 0 for lying outside a band
 * @param trainedSequences sequences with at least one trained token
 * @param changedSequences sequences with at least one truncated or masked token
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
}
