package dev.millrace.corrections.trm;

/**
 * Bounds on {@code |J(current) - surrogate(current)|}, the error of optimising the surrogate objective on samples of
 * the behavior policy, for rewards in [0, 1].
 *
 * <p>{@code T} is the largest sequence length, {@code delta} the largest KL(behavior || current) at any context,
 * {@code epsilon} the largest total variation distance at any context, {@code D_seq} the KL of whole sequences. At
 * T = 4096, delta = 1e-4, D_seq = 0.01 the first three give 1677, 35.0 and 8.2: since the quantity bounded is at most
 * a few units, only a bound below that says anything, and {@link #smallest} of all that apply is a bound too.
 *
 * <p>For rewards in {@code [0, R]} multiply by R. Source: arXiv 2512.23075; the proofs decompose the error into one
 * term per position, how far the contexts have shifted times how much an action can gain there.
 */
public final class TrustRegionBounds {
    private TrustRegionBounds() {}

    /** {@code T (T - 1) delta}: context shift by adding up single steps, as in TRPO. */
    public static double trpo(int length, double delta) {
        requireArguments(length, delta, "delta");
        return (double) length * (length - 1) * delta;
    }

    /** {@code 4/3 T^(3/2) delta}: context shift by Pinsker's inequality on the KL of prefixes, (t - 1) delta. */
    public static double pinskerMarginal(int length, double delta) {
        requireArguments(length, delta, "delta");
        return 4.0 / 3.0 * length * Math.sqrt(length) * delta;
    }

    /** {@code 2 T sqrt(delta D_seq)}: context shift by Pinsker's inequality on the KL of whole sequences. */
    public static double mixed(int length, double delta, double sequenceKl) {
        requireArguments(length, delta, "delta");
        requireArguments(length, sequenceKl, "sequenceKl");
        return 2.0 * length * Math.sqrt(delta * sequenceKl);
    }

    /**
     * {@code 4 sum_t D_t min(1, (T - t) epsilon, sqrt((T - t) delta / 2))}. {@code D_t} is the mean total
     * variation distance over the contexts the behavior policy visits at position t.
     *
     * <p>It uses the value measured at each position instead of the worst case. With the worst case
     * {@code D_t = sqrt(delta / 2)} everywhere it is {@link #pinskerMarginal} or less. From samples,
     * {@code D_t = E|rho_t - 1| / 2}: {@link PositionalTotalVariation}.
     *
     * @param meanTotalVariation {@code D_1 .. D_T}, each in [0, 1]
     * @param delta positive infinity where unknown
     * @param epsilon 1 where unknown
     */
    public static double adaptive(double[] meanTotalVariation, double delta, double epsilon) {
        if (!(delta >= 0.0 && epsilon >= 0.0)) {
            throw new IllegalArgumentException(
                    "divergences must not be negative: delta=" + delta + ", epsilon=" + epsilon);
        }
        int length = meanTotalVariation.length;
        double sum = 0.0;
        for (int t = 1; t <= length; t++) {
            double here = meanTotalVariation[t - 1];
            if (!(here >= 0.0 && here <= 1.0)) {
                throw new IllegalArgumentException(
                        "a total variation distance is in [0, 1]: position=" + t + ", value=" + here);
            }
            int after = length - t;
            double future =
                    after == 0 ? 0.0 : Math.min(1.0, Math.min(after * epsilon, Math.sqrt(after * (delta / 2.0))));
            sum += here * future;
        }
        return 4.0 * sum;
    }

    /** The smallest of several bounds, which is a bound. */
    public static double smallest(double first, double... others) {
        double smallest = first;
        for (double bound : others) {
            smallest = Math.min(smallest, bound);
        }
        return smallest;
    }

    private static void requireArguments(int length, double divergence, String name) {
        if (length < 1 || !(divergence >= 0.0 && divergence < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("a bound needs length >= 1 and a finite " + name + " >= 0: length="
                    + length + ", " + name + "=" + divergence);
        }
    }
}
