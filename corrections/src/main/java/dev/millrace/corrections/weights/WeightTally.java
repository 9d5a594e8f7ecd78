package dev.millrace.corrections.weights;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

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

    /** The weight of a token or a sequence, which the tally counts. */
    interface Weight {
        /** @param index of the packed token or of the sequence */
        double of(WeightTally tally, double logRatio, int index);
    }

    static WeightSummary perToken(TokenBatch batch, LogRatio ratio, float[] weights, Weight weight) {
        ratio.requireFits(batch);
        batch.requireLength("weights", weights.length);
        WeightTally tally = new WeightTally();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            tally.nextSequence();
            for (int t = batch.start(s); t < batch.end(s); t++) {
                weights[t] = batch.isTrained(t) ? (float) weight.of(tally, ratio.finiteAt(batch, s, t), t) : 0f;
            }
        }
        return tally.summary();
    }

    /** Weighs by the sum of the log ratios of a sequence's trained tokens, unbounded; 0 without any. */
    static WeightSummary perSequence(TokenBatch batch, LogRatio ratio, float[] weights, Weight weight) {
        ratio.requireFits(batch);
        batch.requireLength("weights", weights.length);
        WeightTally tally = new WeightTally();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            tally.nextSequence();
            double sum = 0.0; // double: thousands of float terms would lose the small ones
            for (int t = batch.start(s); t < batch.end(s); t++) {
                sum += batch.isTrained(t) ? ratio.finiteAt(batch, s, t) : 0.0;
            }
            float own = (float) weight.of(tally, sum, s);
            for (int t = batch.start(s); t < batch.end(s); t++) {
                weights[t] = batch.isTrained(t) ? own : 0f;
            }
        }
        return tally.summary();
    }

    /** Closes the previous sequence, and opens the next one. */
    void nextSequence() {
        closeSequence();
        trainedAtSequenceStart = trainedTokens;
        changedAtSequenceStart = truncatedTokens + maskedTokens;
    }

    double kept(double weight, int tokens) {
        add(weight, tokens);
        return weight;
    }

    double truncated(double weight, int tokens) {
        truncatedTokens += tokens;
        return kept(weight, tokens);
    }

    double masked(int tokens) {
        maskedTokens += tokens;
        return kept(0.0, tokens);
    }

    /** {@code min(e^logWeight, cap)}. */
    double capped(double logWeight, double logCap, int tokens) {
        double weight = Math.exp(LogRatio.bounded(Math.min(logWeight, logCap)));
        return logWeight > logCap ? truncated(weight, tokens) : kept(weight, tokens);
    }

    /** {@code e^logWeight} within the band, else 0. */
    double banded(double logWeight, double logLower, double logUpper, int tokens) {
        double bounded = LogRatio.bounded(logWeight);
        return bounded < logLower || bounded > logUpper ? masked(tokens) : kept(Math.exp(bounded), tokens);
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
