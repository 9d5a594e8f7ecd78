package dev.millrace.corrections.m2po;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * The tokens one mask decides on: those whose byte in the mask is {@code mark} until {@link #apply} overwrites it.
 *
 * <p>m2 is computed again in every pass. Reading nine bytes of a token and squaring costs less than keeping eight.
 */
final class Candidates {
    /** A mark that is neither 0 (context) nor 1 (trained). */
    static final byte HARMFUL = 2;

    private static final long EXPONENT = 0x7ff0_0000_0000_0000L;
    private static final long LOWEST_OF_EXPONENT = 0x0010_0000_0000_0000L;

    private final LogRatio ratio;
    private final byte[] mask;
    private final byte mark;

    Candidates(LogRatio ratio, byte[] mask, byte mark) {
        this.ratio = ratio;
        this.mask = mask;
        this.mark = mark;
    }

    /**
     * Marks the trained tokens whose update moves the policy further away, and counts them.
     *
     * <p>Branch-free, since a branch predictor cannot predict the sign of a ratio.
     *
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming sequence and token
     */
    int mark(TokenBatch batch, double[] advantages) {
        int marked = 0;
        long infinite = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            double sign = -Math.signum(advantages[s]);
            for (int t = batch.start(s); t < batch.end(s); t++) {
                double logRatio = ratio.at(t);
                int trained = mask[t];
                // the exponent of what is not finite is all ones, and one more overflows into the sign
                infinite |= ((Double.doubleToRawLongBits(logRatio) & EXPONENT) + LOWEST_OF_EXPONENT >>> 63) & trained;
                int harmful =
                        (int) (Double.doubleToRawLongBits(sign * logRatio + 0.0) >>> 63) & trained; // -0 becomes 0
                mask[t] = (byte) (trained << harmful);
                marked += harmful;
            }
        }
        if (infinite != 0) {
            ratio.requireFinite(batch);
        }
        return marked;
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

    /** The sum of their m2, rounded at every step; not finite where one of them is not. */
    double roundedSum() {
        double a = 0; // four chains: one would wait for the latency of every addition
        double b = 0;
        double c = 0;
        double d = 0;
        int t = 0;
        for (; t < mask.length - 3; t += 4) {
            a += marked(t);
            b += marked(t + 1);
            c += marked(t + 2);
            d += marked(t + 3);
        }
        for (; t < mask.length; t++) {
            a += marked(t);
        }
        return (a + b) + (c + d);
    }

    /** Returns m2 of a candidate and 0 for any other token, regardless of its value; branch-free. */
    private double marked(int token) {
        return Double.longBitsToDouble(key(token) & -(long) (mask[token] >> (mark >> 1)));
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
        int shift = mark >> 1; // a mark of 1 is the lowest bit of the byte, one of 2 the next
        for (int t = 0; t < mask.length; t++) {
            int marked = mask[t] >> shift;
            double m2 = marked(t);
            if (m2 < threshold || marked == 0) {
                double next = high + m2;
                double part = next - high;
                low += (high - (next - part)) + (m2 - part);
                high = next;
                below += marked;
            } else if (m2 < Double.POSITIVE_INFINITY) {
                above.add(m2);
            } else { // NaN compares false twice and ends here too
                ratio.requireFinite(batch);
            }
        }
        sum.add(high, low);
        return below;
    }

    /** The cut that leaves one candidate: the smallest, and of several the last. */
    MaskThreshold allButTheLastSmallest() {
        double smallest = Double.POSITIVE_INFINITY;
        int ties = 0;
        for (int t = 0; t < mask.length; t++) {
            if (mask[t] == mark) {
                double m2 = squared(t);
                ties = m2 < smallest ? 1 : m2 == smallest ? ties + 1 : ties;
                smallest = Math.min(smallest, m2);
            }
        }
        return new MaskThreshold(Double.doubleToRawLongBits(smallest), ties - 1);
    }

    /** Overwrites every mark with 1 if kept, 0 if masked. */
    void apply(MaskThreshold cut) {
        if (cut.equals(MaskThreshold.NOTHING_MASKED)) {
            unmark();
        } else if (cut.tiesMasked() == 0) {
            applyWithoutTies(cut.key());
        } else {
            applyInOrder(cut);
        }
    }

    private void unmark() {
        for (int t = 0; mark != 1 && t < mask.length; t++) {
            mask[t] = (byte) (mask[t] + 1 >> 1);
        }
    }

    /** Without a branch, as in {@link #mark}. */
    private void applyWithoutTies(long largestKept) {
        int shift = mark >> 1;
        for (int t = 0; t < mask.length; t++) {
            int kept =
                    1 ^ (int) (largestKept - key(t) >>> 63); // keys are not negative: the difference does not overflow
            mask[t] = (byte) (mask[t] & mark - 1 | mask[t] >> shift & kept);
        }
    }

    private void applyInOrder(MaskThreshold cut) {
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
