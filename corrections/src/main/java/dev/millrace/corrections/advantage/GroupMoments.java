package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;

/** Size, mean and sample standard deviation (Bessel: divided by n − 1) of a value in each group of a batch. */
final class GroupMoments {
    private final int[] sizes;
    private final double[] means;
    private final double[] standardDeviations;

    private GroupMoments(int[] sizes, double[] means, double[] standardDeviations) {
        this.sizes = sizes;
        this.means = means;
        this.standardDeviations = standardDeviations;
    }

    static GroupMoments of(TokenBatch batch, double[] values) {
        int[] groups = new int[values.length];
        for (int s = 0; s < groups.length; s++) {
            groups[s] = batch.group(s);
        }
        return of(groups, batch.groupCount(), values);
    }

    /** Computes the moments of values whose group indices are given. */
    static GroupMoments of(int[] groups, int groupCount, double[] values) {
        int[] sizes = new int[groupCount];
        double[] means = new double[groupCount];
        for (int i = 0; i < values.length; i++) {
            sizes[groups[i]]++;
            means[groups[i]] += values[i];
        }
        for (int g = 0; g < groupCount; g++) {
            means[g] /= Math.max(1, sizes[g]);
        }
        double[] deviations = new double[groupCount];
        for (int i = 0; i < values.length; i++) { // a second pass: a sum of squares would cancel for close values
            double centred = values[i] - means[groups[i]];
            deviations[groups[i]] += centred * centred;
        }
        for (int g = 0; g < groupCount; g++) {
            deviations[g] = sizes[g] > 1 ? Math.sqrt(deviations[g] / (sizes[g] - 1)) : 0.0;
        }
        return new GroupMoments(sizes, means, deviations);
    }

    int size(int group) {
        return sizes[group];
    }

    double mean(int group) {
        return means[group];
    }

    /** 0 for a group of one. */
    double standardDeviation(int group) {
        return standardDeviations[group];
    }
}
