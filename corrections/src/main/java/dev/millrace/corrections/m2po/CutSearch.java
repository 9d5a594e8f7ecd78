package dev.millrace.corrections.m2po;

import java.util.Arrays;

/**
 * Finds how many of the tokens at or above the threshold can be kept: in ascending order, as long as the mean of all
 * kept tokens stays strictly below the threshold.
 *
 * <p>Each of them raises the sum by at least the threshold, so once the mean is not below it no later one brings it
 * back: whole buckets are taken until one does not fit, and only that one is looked into. Single-use.
 */
final class CutSearch {
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

    /** How many tokens are kept in all, once the cut is found. */
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
