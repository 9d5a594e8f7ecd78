package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;

/**
 * Mean, standard deviation (n - 1), extremes and fractions of one number per sequence, over the sequences that count.
 *
 * <p>Which count depends on the metric, so the caller says whether those without a trained token do. Sums run in
 * sequence order, so the result does not depend on how many threads filled the numbers in.
 */
final class SequenceStatistics {
    private final TokenBatch batch;
    private final double[] values;
    private final boolean untrainedToo;
    private final int count;

    SequenceStatistics(TokenBatch batch, double[] values, boolean untrainedToo) {
        this.batch = batch;
        this.values = values;
        this.untrainedToo = untrainedToo;
        int counted = 0;
        for (int s = 0; s < values.length; s++) {
            counted += counts(s) ? 1 : 0;
        }
        this.count = counted;
    }

    private boolean counts(int s) {
        return untrainedToo || batch.trainedTokens(s) > 0;
    }

    double mean() {
        double sum = 0;
        for (int s = 0; s < values.length; s++) {
            sum += counts(s) ? values[s] : 0;
        }
        return sum / count;
    }

    /** 0 of a single sequence. */
    double standardDeviation() {
        if (count < 2) {
            return 0;
        }
        double mean = mean();
        double squares = 0;
        for (int s = 0; s < values.length; s++) {
            double deviation = counts(s) ? values[s] - mean : 0;
            squares += deviation * deviation;
        }
        return Math.sqrt(squares / (count - 1));
    }

    double max() {
        double max = Double.NEGATIVE_INFINITY;
        for (int s = 0; s < values.length; s++) {
            max = counts(s) ? Math.max(max, values[s]) : max;
        }
        return max;
    }

    double min() {
        double min = Double.POSITIVE_INFINITY;
        for (int s = 0; s < values.length; s++) {
            min = counts(s) ? Math.min(min, values[s]) : min;
        }
        return min;
    }

    double maxDeviation(double ideal) {
        double max = 0;
        for (int s = 0; s < values.length; s++) {
            max = counts(s) ? Math.max(max, Math.abs(values[s] - ideal)) : max;
        }
        return max;
    }

    double fractionAbove(double bound) {
        int above = 0;
        for (int s = 0; s < values.length; s++) {
            above += counts(s) && values[s] > bound ? 1 : 0;
        }
        return above / (double) count;
    }

    double fractionBelow(double bound) {
        int below = 0;
        for (int s = 0; s < values.length; s++) {
            below += counts(s) && values[s] < bound ? 1 : 0;
        }
        return below / (double) count;
    }
}
