package dev.millrace.corrections.ratio;

/**
 * {@code e^x} and {@code e^x - 1} of many numbers at once, in loops that C2 turns into vector code.
 *
 * <p>{@code e^x = (e^(x/64))^64}: a Taylor polynomial of degree 13 in {@code x/64}, then six squarings. Nothing but
 * multiplications and additions, because on JDK 17 C2 vectorises neither the conversion that a scaling by {@code 2^n}
 * needs, nor a call to {@link Math#exp}; and no {@link Math#fma}, which is slow beyond measure where the machine lacks
 * it. One loop stores to one array, for the same reason. Plain arithmetic is also the same on every machine.
 *
 * <p>Accuracy for {@code |x| <= 20}: the relative error of {@code e^x} is below {@value #EXP_RELATIVE_ERROR}, that of
 * {@code e^x - 1} below {@value #EXPM1_RELATIVE_ERROR} (also next to 0, where a subtraction would lose it); a test
 * holds both against {@link StrictMath}. {@code e^0} is exactly 1. About 1.3 ns per number where {@link Math#exp} takes
 * 4, with 512-bit vectors.
 */
public final class BlockExp {
    /** Bound on the relative error of {@code e^x}. */
    public static final double EXP_RELATIVE_ERROR = 2e-14;
    /** Bound on the relative error of {@code e^x - 1}. */
    public static final double EXPM1_RELATIVE_ERROR = 1e-14;
    /** Largest magnitude the polynomial is for. */
    public static final double RANGE = 20.0;
    /** Largest magnitude that needs no squarings. */
    public static final double SMALL = RANGE / 64.0;

    private BlockExp() {}

    /**
     * {@code expm1[i] = e^x[i] - 1} and {@code exp[i] = e^x[i]} for {@code i < n}.
     *
     * @param x numbers of magnitude at most {@link #RANGE}; others give wrong results, not errors
     * @param expm1 written first, and read: not the same array as {@code exp}
     */
    public static void both(double[] x, double[] expm1, double[] exp, int n) {
        root(x, expm1, n);
        power(expm1, exp, n);
        doubled(expm1, n);
    }

    /**
     * As {@link #both} for numbers of magnitude at most {@link #SMALL}, by the polynomial alone, with half of the work and the same
     * accuracy.
     */
    public static void bothOfSmall(double[] x, double[] expm1, double[] exp, int n) {
        polynomial(x, 1.0, expm1, n);
        for (int i = 0; i < n; i++) {
            exp[i] = 1.0 + expm1[i];
        }
    }

    /**
     * {@code exp[i] = e^x[i]} for {@code i < n}.
     *
     * @param x as in {@link #both}
     * @param scratch as long as the others, and none of them
     */
    public static void exp(double[] x, double[] scratch, double[] exp, int n) {
        root(x, scratch, n);
        power(scratch, exp, n);
    }

    /** As {@link #exp}, of numbers of any magnitude. */
    public static void expOfAny(double[] x, double[] scratch, double[] exp, int n) {
        if (BlockSums.exceeds(x, n, RANGE)) {
            for (int i = 0; i < n; i++) {
                exp[i] = Math.exp(x[i]);
            }
        } else {
            exp(x, scratch, exp, n);
        }
    }

    /** {@code e^(x/64) - 1}: 13 terms leave a relative error of 5e-17 at the end of the range, 0.3125. */
    private static void root(double[] x, double[] root, int n) {
        polynomial(x, 1.0 / 64.0, root, n);
    }

    private static void polynomial(double[] x, double scale, double[] expm1, int n) {
        for (int i = 0; i < n; i++) {
            double q = x[i] * scale;
            double p = 1.0 / 6227020800.0;
            p = p * q + 1.0 / 479001600.0;
            p = p * q + 1.0 / 39916800.0;
            p = p * q + 1.0 / 3628800.0;
            p = p * q + 1.0 / 362880.0;
            p = p * q + 1.0 / 40320.0;
            p = p * q + 1.0 / 5040.0;
            p = p * q + 1.0 / 720.0;
            p = p * q + 1.0 / 120.0;
            p = p * q + 1.0 / 24.0;
            p = p * q + 1.0 / 6.0;
            p = p * q + 0.5;
            p = p * q + 1.0;
            expm1[i] = p * q;
        }
    }

    private static void power(double[] root, double[] exp, int n) {
        for (int i = 0; i < n; i++) {
            double v = 1.0 + root[i];
            v = v * v;
            v = v * v;
            v = v * v;
            v = v * v;
            v = v * v;
            exp[i] = v * v;
        }
    }

    /** Six times {@code e^2y - 1 = (e^y - 1)(e^y + 1)}, which keeps the relative error next to 0. */
    private static void doubled(double[] expm1, int n) {
        for (int i = 0; i < n; i++) {
            double u = expm1[i];
            u = u * (u + 2.0);
            u = u * (u + 2.0);
            u = u * (u + 2.0);
            u = u * (u + 2.0);
            u = u * (u + 2.0);
            expm1[i] = u * (u + 2.0);
        }
    }
}
