package dev.millrace.corrections.diagnostics;

import java.util.OptionalDouble;

/**
 * Means, spread and correlation of pairs of numbers, in one pass.
 *
 * <p>Sums are of differences to the first pair. Probabilities near 1 that differ in the sixth digit would lose their
 * variance in plain sums of squares.
 */
final class PairMoments {
    private int count;
    private double firstX;
    private double firstY;
    private double sumX;
    private double sumY;
    private double sumXX;
    private double sumYY;
    private double sumXY;

    void add(double x, double y) {
        if (count == 0) {
            firstX = x;
            firstY = y;
        }
        count++;
        double dx = x - firstX;
        double dy = y - firstY;
        sumX += dx;
        sumY += dy;
        sumXX += dx * dx;
        sumYY += dy * dy;
        sumXY += dx * dy;
    }

    double meanOfFirst() {
        return firstX + sumX / count;
    }

    /** With n - 1; 0 of a single pair. */
    double deviationOfFirst() {
        return count < 2 ? 0 : Math.sqrt(Math.max(0, (sumXX - sumX * sumX / count) / (count - 1)));
    }

    /** Pearson's r in [-1, 1]; empty of fewer than two pairs, or if one of the two never varies. */
    OptionalDouble correlation() {
        double varianceX = sumXX - sumX * sumX / count;
        double varianceY = sumYY - sumY * sumY / count;
        if (count < 2 || !(varianceX > 0) || !(varianceY > 0)) {
            return OptionalDouble.empty();
        }
        double r = (sumXY - sumX * sumY / count) / (Math.sqrt(varianceX) * Math.sqrt(varianceY));
        return OptionalDouble.of(Math.max(-1, Math.min(1, r)));
    }
}
