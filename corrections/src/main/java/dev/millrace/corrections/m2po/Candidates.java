package dev.millrace.corrections.m2po;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * The tokens one mask decides on: those whose byte in the mask is {@code mark} until {@link #apply} overwrites it.
 *
 * <p>m2 is computed again in every pass. Reading nine bytes of a token and squaring costs less than keeping eight.
 */
final class Candidates {
    private final LogRatio ratio;
    private final byte[] mask;
    private final byte mark;

    Candidates(LogRatio ratio, byte[] mask, byte mark) {
        this.ratio = ratio;
        this.mask = mask;
        this.mark = mark;
    }

    int positions() {
        return mask.length;
    }

    boolean contains(int token) {
        return mask[token] == mark;
    }

    double squared(int token) {
        double logRatio = ratio.at(token);
        return logRatio * logRatio;
    }

    long key(int token) {
        return Double.doubleToRawLongBits(squared(token));
    }

    /**
     * Adds those below the threshold to {@code sum} and counts them; puts the others into {@code above}.
     *
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming sequence and token
     */
    int split(TokenBatch batch, double threshold, ExactSum sum, SquaredRatioHistogram above) {
        int below = 0;
        double high = 0.0; // the running sum as in ExactSum, in locals: this loop is where the time goes
        double low = 0.0;
        for (int t = 0; t < mask.length; t++) {
            if (mask[t] == mark) {
                double m2 = squared(t);
                if (m2 < threshold) {
                    double next = high + m2;
                    double part = next - high;
                    low += (high - (next - part)) + (m2 - part);
                    high = next;
                    below++;
                } else if (m2 < Double.POSITIVE_INFINITY) {
                    above.add(m2);
                } else { // NaN compares false twice and ends here too
                    ratio.requireFinite(batch);
                }
            }
        }
        sum.add(high, low);
        return below;
    }

    /** The cut that leaves one candidate: the smallest, and of several the last. */
    Cut allButTheLastSmallest() {
        double smallest = Double.POSITIVE_INFINITY;
        int ties = 0;
        for (int t = 0; t < mask.length; t++) {
            if (mask[t] == mark) {
                double m2 = squared(t);
                ties = m2 < smallest ? 1 : m2 == smallest ? ties + 1 : ties;
                smallest = Math.min(smallest, m2);
            }
        }
        return new Cut(Double.doubleToRawLongBits(smallest), ties - 1);
    }

    /** Overwrites every mark with 1 if kept, 0 if masked. */
    void apply(Cut cut) {
        if (cut.equals(Cut.NOTHING_MASKED) && mark == 1) {
            return;
        }
        int tiesToMask = cut.tiesMasked();
        for (int t = 0; t < mask.length; t++) {
            if (mask[t] == mark) {
                long key = key(t);
                if (key == cut.key() && tiesToMask > 0) {
                    tiesToMask--;
                    mask[t] = 0;
                } else {
                    mask[t] = (byte) (key <= cut.key() ? 1 : 0);
                }
            }
        }
    }
}
