package dev.millrace.corrections.m2po;

import dev.millrace.corrections.ratio.LogRatio;

/**
 * Counts and sums of squared log ratios in buckets of equal width in their bits: bucket {@code i} holds the values
 * whose bits are in {@code [lowest + i * 2^shift, lowest + (i + 1) * 2^shift)}.
 *
 * <p>The last bucket of the first histogram also takes everything above it. That is 2^32 times the threshold, so such
 * a token is masked in any batch that fits an array.
 */
final class SquaredRatioHistogram {
    private static final int BUCKET_BITS = 13;
    static final int BUCKETS = 1 << BUCKET_BITS;
    private static final int FIRST_SHIFT = 44; // 256 buckets per power of two, 32 powers of two

    private final int[] counts = new int[BUCKETS];
    private final double[] sums = new double[BUCKETS];
    private final double[] sumRests = new double[BUCKETS];
    private long lowest;
    private int shift = FIRST_SHIFT;
    private int count;

    SquaredRatioHistogram(double threshold) {
        this.lowest = Double.doubleToRawLongBits(threshold);
    }

    void add(double m2) {
        addTo((int) Math.min(Double.doubleToRawLongBits(m2) - lowest >>> shift, BUCKETS - 1), m2);
    }

    private void addTo(int bucket, double m2) {
        double before = sums[bucket];
        double sum = before + m2;
        double part = sum - before;
        sumRests[bucket] += (before - (sum - part)) + (m2 - part);
        sums[bucket] = sum;
        counts[bucket]++;
        count++;
    }

    /** Refills this histogram with the values of one of its buckets, in buckets 2^13 times narrower. */
    void refine(int bucket, LogRatio ratio, byte[] mask) {
        int widthBits = shift;
        lowest += (long) bucket << shift;
        shift = Math.max(0, shift - BUCKET_BITS);
        count = 0;
        for (int i = 0; i < BUCKETS; i++) {
            counts[i] = 0;
            sums[i] = 0.0;
            sumRests[i] = 0.0;
        }
        for (int t = 0; t < mask.length; t++) {
            if (SecondMomentMask.isCandidate(mask[t])) {
                double m2 = SecondMomentMask.squaredLogRatio(ratio, t);
                long above = Double.doubleToRawLongBits(m2) - lowest;
                if (above >>> widthBits == 0) { // negative differences have high bits set, and are out too
                    addTo((int) (above >>> shift), m2);
                }
            }
        }
    }

    /** The bits of the values in one bucket, in packed order. */
    long[] keysIn(int bucket, LogRatio ratio, byte[] mask) {
        long[] keys = new long[counts[bucket]];
        long from = lowestKey(bucket);
        int found = 0;
        for (int t = 0; t < mask.length && found < keys.length; t++) {
            if (SecondMomentMask.isCandidate(mask[t])) {
                long key = Double.doubleToRawLongBits(SecondMomentMask.squaredLogRatio(ratio, t));
                if (key - from >>> shift == 0) {
                    keys[found++] = key;
                }
            }
        }
        return keys;
    }

    long lowestKey(int bucket) {
        return lowest + ((long) bucket << shift);
    }

    /** Whether all values of a bucket are equal. */
    boolean isFullyRefined() {
        return shift == 0;
    }

    /** Whether {@code bucket} may hold values of any size. */
    boolean isOpenEnded(int bucket) {
        return shift == FIRST_SHIFT && bucket == BUCKETS - 1;
    }

    int count() {
        return count;
    }

    int count(int bucket) {
        return counts[bucket];
    }

    double sum(int bucket) {
        return sums[bucket];
    }

    double sumRest(int bucket) {
        return sumRests[bucket];
    }

    double sum() {
        double total = 0.0;
        for (int i = 0; i < BUCKETS; i++) {
            total += sums[i];
        }
        return total;
    }
}
