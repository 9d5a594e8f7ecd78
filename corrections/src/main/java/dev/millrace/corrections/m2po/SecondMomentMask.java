package dev.millrace.corrections.m2po;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * The M2PO mask: the fewest tokens, those with the largest {@code m2 = (log rho)^2}, are masked so that the mean
 * {@code m2} of the rest is below the threshold.
 *
 * <p>The ratio is proximal / behavior in AReaL ({@link LogRatio#anchor}), where the log-probs of the sampling version
 * are not recomputed; proximal / old keeps engine mismatch out of it.
 *
 * <p>Unit: token, decided over the whole batch. Sorted by m2 in descending order, with the earlier packed position
 * first among equals, the tokens before the first suffix whose mean is strictly below the threshold are masked. If no
 * suffix qualifies, all but the last of that order are masked, and {@link SecondMoment#withinThreshold()} is false.
 *
 * <p>No sort takes place. Every token below the threshold is kept, whatever the others are, because the mean of such
 * tokens is below it; how many of the others fit is found with a histogram over the bits of m2, refined where the cut
 * falls. The result is that of the sorted rule with exact sums, ties included: three to six passes over the
 * log-probs, a fixed 0.3 MB beside them, no allocation that grows with the batch.
 *
 * <p>Source: Zheng et al., <i>Prosperity before Collapse</i>, arXiv 2510.01161 (threshold 0.04 there); the suffix
 * rule over all tokens is AReaL's. The authors' own code restricts the rule to harmful tokens, those whose update
 * moves the policy further away (advantage &gt; 0 and ratio &gt; 1, or advantage &lt; 0 and ratio &lt; 1), and keeps
 * all others: {@link #computeHarmful}. It caps |log ratio| at a common value instead of removing tokens to find the
 * cut; here the suffix rule is used for both.
 *
 * <p>Immutable and thread-safe.
 */
public final class SecondMomentMask {
    private static final byte CONTEXT = 0;
    private static final byte KEPT = 1;
    private static final byte CANDIDATE = 2;

    private final double threshold;

    /** @param threshold bound on the mean squared log ratio; finite, not negative. At 0 exactly one token is kept */
    public SecondMomentMask(double threshold) {
        if (!(threshold >= 0.0 && threshold < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "M2PO threshold must be finite and not negative: threshold=" + threshold);
        }
        this.threshold = threshold;
    }

    /**
     * Overwrites {@code mask}, one byte per packed token: 1 if trained and kept, 0 if masked or context.
     *
     * @param ratio read at trained tokens only
     * @param mask the result
     * @throws IllegalArgumentException if an array has not one element per token
     * @throws NonFiniteLogProbException naming sequence and token; {@code mask} is then overwritten in part
     */
    public SecondMoment compute(TokenBatch batch, LogRatio ratio, byte[] mask) {
        requireLengths(batch, ratio, mask);
        batch.copyMask(0, mask, 0, mask.length);
        for (int t = 0; t < mask.length; t++) {
            mask[t] <<= 1;
        }
        return decide(batch, ratio, mask, batch.trainedTokens());
    }

    /**
     * As {@link #compute}, but only harmful tokens are candidates; every other trained token is kept.
     *
     * @param advantages one per packed token; finite at trained tokens. At 0 a token is not harmful
     */
    public SecondMoment computeHarmful(
            TokenBatch batch, LogRatio ratio, float[] advantages, byte[] mask) {
        requireLengths(batch, ratio, mask);
        ratio.requireFinite(batch);
        batch.requireFinite("advantages", advantages);
        batch.copyMask(0, mask, 0, mask.length);
        int candidates = 0;
        for (int t = 0; t < mask.length; t++) {
            if (mask[t] != CONTEXT
                    && (advantages[t] > 0 && ratio.at(t) > 0 || advantages[t] < 0 && ratio.at(t) < 0)) {
                mask[t] = CANDIDATE;
                candidates++;
            }
        }
        return decide(batch, ratio, mask, candidates);
    }

    private SecondMoment decide(TokenBatch batch, LogRatio ratio, byte[] mask, int candidates) {
        SquaredRatioHistogram above = new SquaredRatioHistogram(threshold);
        ExactSum sum = new ExactSum();
        int below = split(batch, ratio, mask, sum, above);
        double total = sum.value() + above.sum();
        Cut cut;
        if (candidates == 0 || above.count() == 0) {
            cut = Cut.NOTHING_MASKED;
        } else if (below == 0) {
            cut = smallestOnly(ratio, mask);
            sum.add(Double.longBitsToDouble(cut.key()));
        } else {
            cut = new CutSearch(threshold, below, sum).find(above, ratio, mask);
        }
        int masked = apply(cut, ratio, mask);
        int kept = candidates - masked;
        double after = kept == 0 ? 0.0 : sum.value() / kept;
        return new SecondMoment(candidates, masked, candidates == 0 ? 0.0 : total / candidates, after,
                candidates == 0 || below > 0);
    }

    /** Sums the candidates below the threshold and counts them; puts the others into the histogram. */
    private int split(TokenBatch batch, LogRatio ratio, byte[] mask, ExactSum sum,
            SquaredRatioHistogram above) {
        int below = 0;
        for (int t = 0; t < mask.length; t++) {
            if (mask[t] == CANDIDATE) {
                double m2 = squaredLogRatio(ratio, t);
                if (m2 < threshold) {
                    sum.add(m2);
                    below++;
                } else if (m2 < Double.POSITIVE_INFINITY) {
                    above.add(m2);
                } else { // NaN compares false twice and ends here too
                    ratio.requireFinite(batch);
                }
            }
        }
        return below;
    }

    private static Cut smallestOnly(LogRatio ratio, byte[] mask) {
        double smallest = Double.POSITIVE_INFINITY;
        int ties = 0;
        for (int t = 0; t < mask.length; t++) {
            if (mask[t] == CANDIDATE) {
                double m2 = squaredLogRatio(ratio, t);
                ties = m2 < smallest ? 1 : m2 == smallest ? ties + 1 : ties;
                smallest = Math.min(smallest, m2);
            }
        }
        return new Cut(Double.doubleToRawLongBits(smallest), ties - 1);
    }

    private static int apply(Cut cut, LogRatio ratio, byte[] mask) {
        int masked = 0;
        int tiesToMask = cut.tiesMasked();
        for (int t = 0; t < mask.length; t++) {
            if (mask[t] == CANDIDATE) {
                long key = Double.doubleToRawLongBits(squaredLogRatio(ratio, t));
                boolean drop = key > cut.key() || key == cut.key() && tiesToMask-- > 0;
                mask[t] = drop ? CONTEXT : KEPT;
                masked += drop ? 1 : 0;
            }
        }
        return masked;
    }

    static double squaredLogRatio(LogRatio ratio, int token) {
        double logRatio = ratio.at(token);
        return logRatio * logRatio;
    }

    static boolean isCandidate(byte mark) {
        return mark == CANDIDATE;
    }

    private static void requireLengths(TokenBatch batch, LogRatio ratio, byte[] mask) {
        ratio.requireFits(batch);
        batch.requireLength("mask", mask.length);
    }
}
