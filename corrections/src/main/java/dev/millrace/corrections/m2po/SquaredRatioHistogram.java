package dev.millrace.corrections.m2po;

import java.util.Arrays;

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

    /** Count, sum and what the sum lost to rounding, side by side: one bucket is one cache line. */
    private final double[] cells = new double[3 * BUCKETS];

    private long lowest;
    private int shift = FIRST_SHIFT;

    SquaredRatioHistogram(double threshold) {
        this.lowest = Double.doubleToRawLongBits(threshold);
    }

    void add(double m2) {
        addTo((int) Math.min(Double.doubleToRawLongBits(m2) - lowest >>> shift, BUCKETS - 1), m2);
    }

    private void addTo(int bucket, double m2) {
        int cell = 3 * bucket;
        double before = cells[cell + 1];
        double sum = before + m2;
        double part = sum - before;
        cells[cell] += 1.0;
        cells[cell + 1] = sum;
        cells[cell + 2] += (before - (sum - part)) + (m2 - part);
    }

    /** Refills this histogram with the values of one of its buckets, in buckets 2^13 times narrower. */
    void refine(int bucket, Candidates candidates) {
        int widthBits = shift;
        lowest = lowestKey(bucket);
        shift = Math.max(0, shift - BUCKET_BITS);
        Arrays.fill(cells, 0.0);
        for (int t = 0; t < candidates.positions(); t++) {
            if (candidates.contains(t)) {
                long above = candidates.key(t) - lowest;
                if (above >>> widthBits == 0) { // negative differences have high bits set, and are out too
                    addTo((int) (above >>> shift), candidates.squared(t));
                }
            }
        }
    }

    /** The bits of the values in one bucket, in packed order. */
    long[] keysIn(int bucket, Candidates candidates) {
        long[] keys = new long[count(bucket)];
        long from = lowestKey(bucket);
        int found = 0;
        for (int t = 0; t < candidates.positions() && found < keys.length; t++) {
            if (candidates.contains(t)) {
                long key = candidates.key(t);
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

    boolean isFullyRefined() {
        return shift == 0;
    }

    /** Returns whether {@code bucket} may hold values of any size. */
    boolean isOpenEnded(int bucket) {
        return shift == FIRST_SHIFT && bucket == BUCKETS - 1;
    }

    int count(int bucket) {
        return (int) cells[3 * bucket];
    }

    double sum(int bucket) {
        return cells[3 * bucket + 1];
    }

    double sumRest(int bucket) {
        return cells[3 * bucket + 2];
    }

    double sum() {
        double total = 0.0;
        for (int i = 0; i < BUCKETS; i++) {
            total += sum(i);
        }
        return total;
    }
}
