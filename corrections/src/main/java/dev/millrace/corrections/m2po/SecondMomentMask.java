package dev.millrace.corrections.m2po;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.Arrays;

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
 * <p>The implementation does not sort. It keeps every token below the threshold, because the mean of such tokens is
 * below it. A histogram over the bits of m2, refined where the cut falls, tells how many of the other tokens fit. The
 * result equals that of the sorted rule with exact sums, ties included. It takes one pass over the log-probs where a
 * rounded sum proves that nothing is masked, and three to six passes otherwise. It uses a fixed 0.2 MB of extra memory
 * and no allocation that grows with the batch.
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
    /** A rounded sum of n numbers that are not negative is off by less than n times this share of it. */
    private static final double ROUNDING = 0x1p-52;

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
     * @throws IllegalArgumentException if an array has not one element per token
     * @throws NonFiniteLogProbException naming sequence and token; {@code mask} is then overwritten in part
     */
    public SecondMoment compute(TokenBatch batch, LogRatio ratio, byte[] mask) {
        ratio.requireFits(batch);
        batch.requireLength("mask", mask.length);
        batch.copyMask(0, mask, 0, mask.length);
        return decide(batch, new Candidates(ratio, mask, (byte) 1), batch.trainedTokens());
    }

    /**
     * As {@link #compute}, but only harmful tokens are candidates; every other trained token is kept.
     *
     * @param advantages one per sequence; finite. At 0 no token is harmful
     */
    public SecondMoment computeHarmful(TokenBatch batch, LogRatio ratio, double[] advantages, byte[] mask) {
        ratio.requireFits(batch);
        requireFinite(batch, advantages);
        batch.requireLength("mask", mask.length);
        batch.copyMask(0, mask, 0, mask.length);
        Candidates candidates = new Candidates(ratio, mask, Candidates.HARMFUL);
        return decide(batch, candidates, candidates.mark(batch, advantages));
    }

    private static void requireFinite(TokenBatch batch, double[] advantages) {
        if (advantages.length != batch.sequenceCount()) {
            throw new IllegalArgumentException("advantages: one per sequence is needed: length=" + advantages.length
                    + ", sequences=" + batch.sequenceCount());
        }
        for (int s = 0; s < advantages.length; s++) {
            if (!Double.isFinite(advantages[s])) {
                throw new IllegalArgumentException(
                        "advantages must be finite: sequence=" + s + ", value=" + advantages[s]);
            }
        }
    }

    /**
     * The mean {@code m2} of all trained tokens, which {@link #compute} calls {@code before}, to the last bits; 0 without one.
     *
     * @throws NonFiniteLogProbException naming sequence and token
     */
    public static double mean(TokenBatch batch, LogRatio ratio) {
        ratio.requireFits(batch);
        double sum = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            if (batch.trainedTokens(s) > 0) {
                sum += ratio.sumOfSquares(batch, s);
            }
        }
        if (!Double.isFinite(sum)) {
            ratio.requireFinite(batch);
        }
        return batch.trainedTokens() == 0 ? 0 : sum / batch.trainedTokens();
    }

    private SecondMoment decide(TokenBatch batch, Candidates candidates, int count) {
        if (count == 0) {
            return new SecondMoment(0, 0, 0.0, 0.0, true);
        }
        double sum = candidates.roundedSum();
        if (sum * (1.0 + (count + 4) * ROUNDING) < threshold * count) {
            candidates.apply(MaskThreshold.NOTHING_MASKED);
            return new SecondMoment(count, 0, sum / count, sum / count, true);
        }
        SquaredRatioHistogram above = new SquaredRatioHistogram(threshold);
        ExactSum kept = new ExactSum();
        int below = candidates.split(batch, threshold, kept, above);
        double before = (kept.value() + above.sum()) / count;
        if (below == 0) {
            MaskThreshold smallest = candidates.allButTheLastSmallest();
            candidates.apply(smallest);
            return new SecondMoment(count, count - 1, before, Double.longBitsToDouble(smallest.key()), false);
        }
        CutSearch search = new CutSearch(threshold, below, kept);
        candidates.apply(search.find(above, candidates));
        return new SecondMoment(count, (int) (count - search.kept()), before, kept.value() / search.kept(), true);
    }

    /**
     * Finds how many of the tokens at or above the threshold can be kept: in ascending order, as long as the mean of all
     * kept tokens stays strictly below the threshold.
     *
     * <p>Each of them raises the sum by at least the threshold, so once the mean is not below it no later one brings it
     * back: whole buckets are taken until one does not fit, and only that one is looked into. Single-use.
     */
    static final class CutSearch {
        private static final int SORTED_AT_MOST = 1 << 14;

        private final double threshold;
        private final ExactSum sum;
        private long kept;

        /** @param sum of the tokens kept so far; grows by those that are found to fit */
        CutSearch(double threshold, int kept, ExactSum sum) {
            this.threshold = threshold;
            this.kept = kept;
            this.sum = sum;
        }

        /** Returns how many tokens are kept in all, once the cut is found. */
        long kept() {
            return kept;
        }

        MaskThreshold find(SquaredRatioHistogram histogram, Candidates candidates) {
            while (true) {
                int bucket = takeWhole(histogram);
                if (bucket == SquaredRatioHistogram.BUCKETS) {
                    return MaskThreshold.NOTHING_MASKED;
                }
                if (histogram.isOpenEnded(bucket)) {
                    return new MaskThreshold(histogram.lowestKey(bucket) - 1, 0);
                }
                if (histogram.isFullyRefined()) {
                    return amongEquals(histogram.lowestKey(bucket), histogram.count(bucket));
                }
                if (histogram.count(bucket) <= SORTED_AT_MOST) {
                    return amongSorted(histogram.keysIn(bucket, candidates));
                }
                histogram.refine(bucket, candidates);
            }
        }

        /** Takes buckets in ascending order as long as they fit; returns the first that does not. */
        private int takeWhole(SquaredRatioHistogram histogram) {
            for (int bucket = 0; bucket < SquaredRatioHistogram.BUCKETS; bucket++) {
                int count = histogram.count(bucket);
                if (count > 0) {
                    double bucketSum = histogram.sum(bucket);
                    double bucketRest = histogram.sumRest(bucket);
                    if (!sum.isBelow(bucketSum, bucketRest, threshold, kept + count)) {
                        return bucket;
                    }
                    sum.add(bucketSum, bucketRest);
                    kept += count;
                }
            }
            return SquaredRatioHistogram.BUCKETS;
        }

        private MaskThreshold amongSorted(long[] keys) {
            Arrays.sort(keys);
            int end = 0;
            for (int from = 0; from < keys.length; from = end) {
                while (end < keys.length && keys[end] == keys[from]) {
                    end++;
                }
                MaskThreshold cut = amongEquals(keys[from], end - from);
                if (cut.tiesMasked() > 0) {
                    return cut;
                }
            }
            throw new IllegalStateException("a bucket that did not fit as a whole fits value by value: " + keys.length);
        }

        /** Takes as many of {@code ties} equal values as fit. */
        private MaskThreshold amongEquals(long key, int ties) {
            double m2 = Double.longBitsToDouble(key);
            int taken = 0;
            while (taken < ties && sum.isBelow(m2, 0.0, threshold, kept + 1)) {
                sum.add(m2);
                kept++;
                taken++;
            }
            return new MaskThreshold(key, ties - taken);
        }
    }
}
