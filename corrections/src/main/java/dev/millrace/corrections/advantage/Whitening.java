package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;

/**
 * Whitening over the trained tokens of a batch: {@code (x − mean) / sqrt(var + 1e-8)}, the variance being the sample's
 * (n − 1).
 *
 * <p>Unit: batch. Every token of a sequence with n trained tokens counts n times where the value is the sequence's, so
 * long answers set the mean.
 */
final class Whitening {
    static final int LEAST_TOKENS = 2;

    private static final double VARIANCE_FLOOR = 1e-8;

    private final double mean;
    private final double scale;

    private Whitening(double mean, double variance) {
        this.mean = mean;
        this.scale = 1 / Math.sqrt(variance + VARIANCE_FLOOR);
    }

    /** Of one value per packed token. */
    static Whitening ofTokens(TokenBatch batch, double[] values) {
        requireTwoTokens(batch);
        double sum = 0.0;
        for (int t = 0; t < values.length; t++) {
            sum += batch.isTrained(t) ? values[t] : 0.0;
        }
        double mean = sum / batch.trainedTokens();
        double squares = 0.0;
        for (int t = 0; t < values.length; t++) {
            squares += batch.isTrained(t) ? (values[t] - mean) * (values[t] - mean) : 0.0;
        }
        return new Whitening(mean, squares / (batch.trainedTokens() - 1));
    }

    /** Of one value per sequence, counted once per trained token. */
    static Whitening ofSequences(TokenBatch batch, double[] values) {
        requireTwoTokens(batch);
        double sum = 0.0;
        for (int s = 0; s < values.length; s++) {
            sum += batch.trainedTokens(s) * values[s];
        }
        double mean = sum / batch.trainedTokens();
        double squares = 0.0;
        for (int s = 0; s < values.length; s++) {
            squares += batch.trainedTokens(s) * (values[s] - mean) * (values[s] - mean);
        }
        return new Whitening(mean, squares / (batch.trainedTokens() - 1));
    }

    double apply(double value) {
        return (value - mean) * scale;
    }

    double[] apply(double[] values) {
        double[] whitened = new double[values.length];
        for (int i = 0; i < values.length; i++) {
            whitened[i] = apply(values[i]);
        }
        return whitened;
    }

    private static void requireTwoTokens(TokenBatch batch) {
        if (batch.trainedTokens() < LEAST_TOKENS) {
            throw new IllegalArgumentException(
                    "whitening needs a variance, so at least 2 trained tokens: " + batch.trainedTokens());
        }
    }
}
