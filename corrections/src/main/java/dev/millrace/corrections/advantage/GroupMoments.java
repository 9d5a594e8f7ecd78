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
        int groups = batch.groupCount();
        int[] sizes = new int[groups];
        double[] means = new double[groups];
        for (int s = 0; s < values.length; s++) {
            sizes[batch.group(s)]++;
            means[batch.group(s)] += values[s];
        }
        for (int g = 0; g < groups; g++) {
            means[g] /= Math.max(1, sizes[g]);
        }
        double[] squares = new double[groups];
        for (int s = 0; s < values.length; s++) { // a second pass: a sum of squares would cancel for close rewards
            double centred = values[s] - means[batch.group(s)];
            squares[batch.group(s)] += centred * centred;
        }
        for (int g = 0; g < groups; g++) {
            squares[g] = sizes[g] > 1 ? Math.sqrt(squares[g] / (sizes[g] - 1)) : 0.0;
        }
        return new GroupMoments(sizes, means, squares);
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
