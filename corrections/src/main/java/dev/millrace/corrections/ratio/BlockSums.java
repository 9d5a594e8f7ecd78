package dev.millrace.corrections.ratio;

/**
 * Sums over the first {@code n} elements of a block, in eight interleaved chains.
 *
 * <p>One chain would wait for the latency of every addition, since Java may not reorder floating point. The order is
 * fixed, so equal blocks give equal sums on every machine.
 */
public final class BlockSums {
    private BlockSums() {}

    public static double sum(double[] x, int n) {
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

    public static double sumOfSquares(double[] x, int n) {
        return sumOfProducts(x, x, n);
    }

    public static double sumOfProducts(double[] x, double[] y, int n) {
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
    public static double max(double[] x, int n) {
        double a = Double.NEGATIVE_INFINITY;
        double b = a;
        double c = a;
        double d = a;
        int i = 0;
        for (; i < n - 3; i += 4) {
            a = x[i] > a ? x[i] : a;
            b = x[i + 1] > b ? x[i + 1] : b;
            c = x[i + 2] > c ? x[i + 2] : c;
            d = x[i + 3] > d ? x[i + 3] : d;
        }
        for (; i < n; i++) {
            a = x[i] > a ? x[i] : a;
        }
        return Math.max(Math.max(a, b), Math.max(c, d));
    }

    /** {@code min x[i]}, {@code +infinity} of none. */
    public static double min(double[] x, int n) {
        double a = Double.POSITIVE_INFINITY;
        double b = a;
        double c = a;
        double d = a;
        int i = 0;
        for (; i < n - 3; i += 4) {
            a = x[i] < a ? x[i] : a;
            b = x[i + 1] < b ? x[i + 1] : b;
            c = x[i + 2] < c ? x[i + 2] : c;
            d = x[i + 3] < d ? x[i + 3] : d;
        }
        for (; i < n; i++) {
            a = x[i] < a ? x[i] : a;
        }
        return Math.min(Math.min(a, b), Math.min(c, d));
    }

    /**
     * Returns how many {@code x[i] > bound}, by the sign of the difference: no branch, since which elements exceed a
     * bound is what a branch predictor cannot know. Adding 0 turns a difference of -0 into 0.
     */
    public static int countAbove(double[] x, int n, double bound) {
        long count = 0;
        for (int i = 0; i < n; i++) {
            count += Double.doubleToRawLongBits(bound - x[i] + 0.0) >>> 63;
        }
        return (int) count;
    }

    /** Returns how many {@code x[i] < bound}; see {@link #countAbove}. */
    public static int countBelow(double[] x, int n, double bound) {
        long count = 0;
        for (int i = 0; i < n; i++) {
            count += Double.doubleToRawLongBits(x[i] - bound + 0.0) >>> 63;
        }
        return (int) count;
    }

    /**
     * Returns whether an {@code |x[i]| > bound}, by the sign of the difference of their bits: as {@link #countAbove},
     * and of all at once.
     */
    public static boolean exceeds(double[] x, int n, double bound) {
        long limit = Double.doubleToRawLongBits(bound);
        long a = 0;
        long b = 0;
        long c = 0;
        long d = 0;
        int i = 0;
        for (; i < n - 3; i += 4) {
            a |= limit - magnitude(x[i]);
            b |= limit - magnitude(x[i + 1]);
            c |= limit - magnitude(x[i + 2]);
            d |= limit - magnitude(x[i + 3]);
        }
        for (; i < n; i++) {
            a |= limit - magnitude(x[i]);
        }
        return (a | b | c | d) < 0;
    }

    /** Bits that are in the order of the magnitudes. */
    private static long magnitude(double x) {
        return Double.doubleToRawLongBits(x) & Long.MAX_VALUE;
    }

    /** Returns whether the bits of an {@code x[i]} are not those of {@code x[0]}. */
    public static boolean varies(double[] x, int n) {
        long first = n == 0 ? 0 : Double.doubleToRawLongBits(x[0]);
        long a = 0;
        long b = 0;
        long c = 0;
        long d = 0;
        int i = 0;
        for (; i < n - 3; i += 4) {
            a |= first ^ Double.doubleToRawLongBits(x[i]);
            b |= first ^ Double.doubleToRawLongBits(x[i + 1]);
            c |= first ^ Double.doubleToRawLongBits(x[i + 2]);
            d |= first ^ Double.doubleToRawLongBits(x[i + 3]);
        }
        for (; i < n; i++) {
            a |= first ^ Double.doubleToRawLongBits(x[i]);
        }
        return (a | b | c | d) != 0;
    }
}
