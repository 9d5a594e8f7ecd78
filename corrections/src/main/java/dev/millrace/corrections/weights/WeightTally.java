package dev.millrace.corrections.weights;

/** Adds up a {@link WeightSummary}, token by token or by runs of tokens that share a weight. Confined to one call. */
final class WeightTally {
    private int trainedTokens;
    private int truncatedTokens;
    private int maskedTokens;
    private int trainedSequences;
    private int changedSequences;
    private double sum;
    private double min = Double.POSITIVE_INFINITY;
    private double max = Double.NEGATIVE_INFINITY;

    private int trainedAtSequenceStart;
    private int changedAtSequenceStart;

    /** Closes the previous sequence, and opens the next one. */
    void nextSequence() {
        closeSequence();
        trainedAtSequenceStart = trainedTokens;
        changedAtSequenceStart = truncatedTokens + maskedTokens;
    }

    void kept(double weight, int tokens) {
        add(weight, tokens);
    }

    void truncated(double weight, int tokens) {
        add(weight, tokens);
        truncatedTokens += tokens;
    }

    /**
     * A block of tokens with weights of their own.
     *
     * @param truncated those of them whose weight was moved onto a bound
     * @param least smallest of the weights
     * @param most largest
     */
    void block(int tokens, int truncated, double sumOfWeights, double least, double most) {
        trainedTokens += tokens;
        truncatedTokens += truncated;
        sum += sumOfWeights;
        min = Math.min(min, least);
        max = Math.max(max, most);
    }

    void masked(int tokens) {
        add(0.0, tokens);
        maskedTokens += tokens;
    }

    private void add(double weight, int tokens) {
        if (tokens == 0) {
            return;
        }
        trainedTokens += tokens;
        sum += weight * tokens;
        min = Math.min(min, weight);
        max = Math.max(max, weight);
    }

    private void closeSequence() {
        trainedSequences += trainedTokens > trainedAtSequenceStart ? 1 : 0;
        changedSequences += truncatedTokens + maskedTokens > changedAtSequenceStart ? 1 : 0;
    }

    WeightSummary summary() {
        closeSequence();
        boolean empty = trainedTokens == 0;
        return new WeightSummary(
                trainedTokens,
                truncatedTokens,
                maskedTokens,
                trainedSequences,
                changedSequences,
                new WeightSummary.Range(empty ? 0 : sum / trainedTokens, empty ? 0 : min, empty ? 0 : max));
    }
}
