package dev.millrace.corrections.length;

import dev.millrace.corrections.TokenBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * How often sequences were rejected at each length, and whether length drives the rejection.
 *
 * <p>A threshold on a sum over tokens rejects long answers regardless of their quality: the sum of {@code n} noisy log
 * ratios has a spread of {@code √n}. The model then learns to give short answers, and the loss looks healthy. Buckets
 * double: lengths 1, 2-3, 4-7, and so on, so that reports of different steps are comparable. Sequences without a
 * trained token before the rejection are in no bucket. A sequence counts as rejected if it has no trained token left.
 *
 * @param buckets from short to long, empty ones left out
 * @param sequences how many sequences had a trained token before
 * @param rejected how many of those have none left
 * @param rankCorrelation Spearman's correlation of length and rejection over sequences, in [-1, 1]; 0 if all or none
 *     were rejected or all lengths agree
 * @param zScore that correlation times {@code √(sequences − 1)}: about standard normal if length plays no role
 */
public record LengthTrapReport(
        List<Bucket> buckets, int sequences, int rejected, double rankCorrelation, double zScore) {
    /** From here on a correlation is not an accident: one report in 740. */
    private static final double SIGNIFICANT = 3.0;

    /**
     * Sequences of similar length.
     *
     * @param fromTokens smallest length
     * @param sequences how many had such a length before the rejection
     * @param rejectedSequences how many of those have no trained token left
     */
    public record Bucket(int fromTokens, int sequences, int rejectedSequences) {
        /** Rejected over all sequences of the bucket. */
        public double rejectionRate() {
            return (double) rejectedSequences / sequences;
        }
    }

    public LengthTrapReport {
        buckets = List.copyOf(buckets);
    }

    /**
     * Compares a batch with the mask a rejection left.
     *
     * @param keptMask one per packed token, 1 if still trained
     * @throws IllegalArgumentException if a token is kept that was not trained before
     */
    public static LengthTrapReport of(TokenBatch before, byte[] keptMask) {
        TokenBatch after = before.withMask(keptMask);
        requireSubset(before, after);
        int[] members = trainedSequences(before);
        int largest = 0;
        for (int s : members) {
            largest = Math.max(largest, bucketOf(before.trainedTokens(s)));
        }
        List<Bucket> buckets = new ArrayList<>();
        for (int b = 0; b <= largest; b++) {
            addBucket(buckets, b, members, before, after);
        }
        int rejected = 0;
        for (int s : members) {
            rejected += after.trainedTokens(s) == 0 ? 1 : 0;
        }
        double correlation = rankCorrelation(members, before, after);
        return new LengthTrapReport(
                buckets,
                members.length,
                rejected,
                correlation,
                correlation * Math.sqrt(Math.max(0, members.length - 1)));
    }

    /**
     * Returns whether long answers are rejected for being long: rejection grows with length beyond chance, and the
     * longest bucket loses at least twice the share that the shortest does.
     */
    public boolean isTrap() {
        if (buckets.size() < 2 || !(zScore > SIGNIFICANT)) {
            return false;
        }
        double shortest = buckets.get(0).rejectionRate();
        double longest = buckets.get(buckets.size() - 1).rejectionRate();
        return longest >= 2 * shortest;
    }

    private static void addBucket(List<Bucket> buckets, int b, int[] members, TokenBatch before, TokenBatch after) {
        int sequences = 0;
        int rejected = 0;
        for (int s : members) {
            if (bucketOf(before.trainedTokens(s)) == b) {
                sequences++;
                rejected += after.trainedTokens(s) == 0 ? 1 : 0;
            }
        }
        if (sequences > 0) {
            buckets.add(new Bucket(1 << b, sequences, rejected));
        }
    }

    private static int bucketOf(int length) {
        return 31 - Integer.numberOfLeadingZeros(length);
    }

    private static int[] trainedSequences(TokenBatch batch) {
        int[] members = new int[batch.sequenceCount()];
        int n = 0;
        for (int s = 0; s < members.length; s++) {
            if (batch.trainedTokens(s) > 0) {
                members[n++] = s;
            }
        }
        return Arrays.copyOf(members, n);
    }

    private static void requireSubset(TokenBatch before, TokenBatch after) {
        for (int t = 0; t < before.tokenCount(); t++) {
            if (after.isTrained(t) && !before.isTrained(t)) {
                int s = before.sequenceOf(t);
                throw new IllegalArgumentException(
                        "a rejection cannot train a context token: sequence=" + s + ", token=" + (t - before.start(s)));
            }
        }
    }

    private static double rankCorrelation(int[] members, TokenBatch before, TokenBatch after) {
        double[] lengths = new double[members.length];
        double[] rejections = new double[members.length];
        for (int i = 0; i < members.length; i++) {
            lengths[i] = before.trainedTokens(members[i]);
            rejections[i] = after.trainedTokens(members[i]) == 0 ? 1 : 0;
        }
        return pearson(ranks(lengths), ranks(rejections));
    }

    /** Ranks from 0, ties sharing their mean. */
    private static double[] ranks(double[] values) {
        List<Integer> order = new ArrayList<>();
        for (int i = 0; i < values.length; i++) {
            order.add(i);
        }
        Collections.sort(order, (a, b) -> Double.compare(values[a], values[b]));
        double[] ranks = new double[values.length];
        for (int from = 0; from < values.length; ) {
            int to = from;
            while (to < values.length && values[order.get(to)] == values[order.get(from)]) {
                to++;
            }
            for (int i = from; i < to; i++) {
                ranks[order.get(i)] = (from + to - 1) / 2.0;
            }
            from = to;
        }
        return ranks;
    }

    private static double pearson(double[] x, double[] y) {
        double meanX = Arrays.stream(x).average().orElse(0);
        double meanY = Arrays.stream(y).average().orElse(0);
        double xy = 0;
        double xx = 0;
        double yy = 0;
        for (int i = 0; i < x.length; i++) {
            xy += (x[i] - meanX) * (y[i] - meanY);
            xx += (x[i] - meanX) * (x[i] - meanX);
            yy += (y[i] - meanY) * (y[i] - meanY);
        }
        return xx == 0 || yy == 0 ? 0.0 : xy / Math.sqrt(xx * yy);
    }
}
