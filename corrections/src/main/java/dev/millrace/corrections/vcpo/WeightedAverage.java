package dev.millrace.corrections.vcpo;

import java.util.Arrays;
import java.util.Comparator;

/** How a baseline is taken from returns and their weights. */
public enum WeightedAverage {
    /** {@code sum W R / sum W}: the baseline of least variance. */
    MEAN {
        @Override
        public double of(double[] values, double[] weights, double epsilon) {
            return mean(values, weights, epsilon, Double.NEGATIVE_INFINITY, Double.POSITIVE_INFINITY);
        }
    },
    /** The smallest value that has at least half of the weight at or below it: one outlier cannot move it. */
    MEDIAN {
        @Override
        public double of(double[] values, double[] weights, double epsilon) {
            return quantile(values, weights, 0.5);
        }
    },
    /** The mean of the values clipped to their weighted 5 % and 95 % quantiles. */
    WINSORIZED_MEAN {
        @Override
        public double of(double[] values, double[] weights, double epsilon) {
            double lower = quantile(values, weights, 0.05);
            double upper = quantile(values, weights, 0.95);
            return mean(values, weights, epsilon, lower, upper);
        }
    };

    /**
     * The average; 0 without values or when all weights are 0.
     *
     * @param epsilon added to the sum of the weights a mean is divided by
     */
    public abstract double of(double[] values, double[] weights, double epsilon);

    private static double mean(double[] values, double[] weights, double epsilon, double lower, double upper) {
        double numerator = 0.0;
        double denominator = 0.0;
        for (int i = 0; i < values.length; i++) {
            numerator += Math.min(Math.max(values[i], lower), upper) * weights[i];
            denominator += weights[i];
        }
        denominator += epsilon;
        return denominator == 0.0 ? 0.0 : numerator / denominator;
    }

    private static double quantile(double[] values, double[] weights, double share) {
        double total = 0.0;
        for (double weight : weights) {
            total += weight;
        }
        if (values.length == 0 || total == 0.0) {
            return 0.0;
        }
        Integer[] order = new Integer[values.length];
        Arrays.setAll(order, i -> i);
        Arrays.sort(order, Comparator.comparingDouble(i -> values[i]));
        double below = 0.0;
        for (Integer i : order) {
            below += weights[i];
            if (below >= share * total) {
                return values[i];
            }
        }
        return values[order[order.length - 1]];
    }
}
