package dev.millrace.corrections.rollout;

/**
 * Sums over the first {@code n} elements of a block, in eight interleaved chains.
 *
 * <p>One chain would wait for the latency of every addition, since Java may not reorder floating point. The order is
 * fixed, so equal blocks give equal sums on every machine.
 */
final class BlockSums {
    private BlockSums() {
    }

    /** {@code sum x[i]}. */
    static double sum(double[] x, int n) {
        double a = 0;
        double b = 0;
        double c = 0;
        double d = 0;
        double e = 0;
        double f = 0;
        double g = 0;
        double h = 0;
        int i = 0;
        for (; i < n - 7; i += 8) {
            a += x[i];
            b += x[i + 1];
            c += x[i + 2];
            d += x[i + 3];
            e += x[i + 4];
            f += x[i + 5];
            g += x[i + 6];
            h += x[i + 7];
        }
        for (; i < n; i++) {
            a += x[i];
        }
        return ((a + b) + (c + d)) + ((e + f) + (g + h));
    }

    /** {@code sum x[i]^2}. */
    static double sumOfSquares(double[] x, int n) {
        return sumOfProducts(x, x, n);
    }

    /** {@code sum x[i] y[i]}. */
    static double sumOfProducts(double[] x, double[] y, int n) {
        double a = 0;
        double b = 0;
        double c = 0;
        double d = 0;
        double e = 0;
        double f = 0;
        double g = 0;
        double h = 0;
        int i = 0;
        for (; i < n - 7; i += 8) {
            a += x[i] * y[i];
            b += x[i + 1] * y[i + 1];
            c += x[i + 2] * y[i + 2];
            d += x[i + 3] * y[i + 3];
            e += x[i + 4] * y[i + 4];
            f += x[i + 5] * y[i + 5];
            g += x[i + 6] * y[i + 6];
            h += x[i + 7] * y[i + 7];
        }
        for (; i < n; i++) {
            a += x[i] * y[i];
        }
        return ((a + b) + (c + d)) + ((e + f) + (g + h));
    }

    /** {@code max x[i]}, {@code -infinity} of none. */
    static double max(double[] x, int n) {
        double max = Double.NEGATIVE_INFINITY;
        for (int i = 0; i < n; i++) {
            if (x[i] > max) {
                max = x[i];
            }
        }
        return max;
    }

    /** {@code min x[i]}, {@code +infinity} of none. */
    static double min(double[] x, int n) {
        double min = Double.POSITIVE_INFINITY;
        for (int i = 0; i < n; i++) {
            if (x[i] < min) {
                min = x[i];
            }
        }
        return min;
    }

    /**
     * How many {@code x[i] > bound}, by the sign of the difference: no branch, since which elements exceed a bound is
     * what a branch predictor cannot know. Adding 0 turns a difference of -0 into 0.
     */
    static int countAbove(double[] x, int n, double bound) {
        long count = 0;
        for (int i = 0; i < n; i++) {
            count += Double.doubleToRawLongBits(bound - x[i] + 0.0) >>> 63;
        }
        return (int) count;
    }

    /** How many {@code x[i] < bound}; see {@link #countAbove}. */
    static int countBelow(double[] x, int n, double bound) {
        long count = 0;
        for (int i = 0; i < n; i++) {
            count += Double.doubleToRawLongBits(x[i] - bound + 0.0) >>> 63;
        }
        return (int) count;
    }
}
