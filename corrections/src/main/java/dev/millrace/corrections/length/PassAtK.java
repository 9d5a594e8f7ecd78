package dev.millrace.corrections.length;

/**
 * pass@k without bias: the probability that k samples drawn without replacement from n, c of them correct, contain a
 * correct one, {@code 1 − C(n−c, k) / C(n, k)}.
 *
 * <p>Unit: problem. Computed in log space, as {@code −expm1} of the log of the failure probability, so it is accurate
 * for n in the billions and for values near 0 and near 1; binomials are never formed. Cost O(min(c, k)) up to a hundred
 * thousand, constant above.
 *
 * <p>Source: Chen et al. 2021 (arXiv 2107.03374).
 */
public final class PassAtK {
    private static final long LARGEST_SUM = 100_000;

    private PassAtK() {}

    /**
     * @param samples n, at least k
     * @param correct c, in [0, n]
     * @param k how many are drawn, at least 1
     * @throws IllegalArgumentException if k exceeds n: that is an extrapolation, see {@link BernoulliExtrapolation} and
     *     {@link BetaBinomialFit}
     */
    public static double unbiased(long samples, long correct, long k) {
        return -Math.expm1(logFailure(samples, correct, k));
    }

    /** Log of the probability that none of k drawn samples is correct; −∞ if fewer than k are wrong. */
    public static double logFailure(long samples, long correct, long k) {
        requireCounts(samples, correct);
        if (k < 1 || k > samples) {
            throw new IllegalArgumentException("k must be between 1 and the samples: k=" + k + ", samples=" + samples
                    + "; for larger k extrapolate");
        }
        if (samples - correct < k) {
            return Double.NEGATIVE_INFINITY;
        }
        // C(n−c, k)/C(n, k) = C(n−k, c)/C(n, c), so the shorter of the two products will do
        long terms = Math.min(correct, k);
        long other = Math.max(correct, k);
        return terms <= LARGEST_SUM ? product(samples, terms, other) : stirling(samples, correct, k);
    }

    static void requireCounts(long samples, long correct) {
        if (samples < 1 || correct < 0 || correct > samples) {
            throw new IllegalArgumentException(
                    "correct samples must be between 0 and all: correct=" + correct + ", samples=" + samples);
        }
    }

    /** {@code Σ_{i < terms} log((n − other − i) / (n − i))}. */
    private static double product(long n, long terms, long other) {
        double log = 0.0;
        for (long i = 0; i < terms; i++) {
            log += Math.log1p(-(double) other / (n - i));
        }
        return log;
    }

    /**
     * The same by Stirling's formula: the parts that grow are combined before they are rounded. Coefficients of log n
     * add up to 0, so each {@code x log x} is taken relative to n.
     */
    private static double stirling(long n, long c, long k) {
        double leading = scaled(n, c) + scaled(n, k) - scaled(n, c + k);
        return leading + remainder(n - c) + remainder(n - k) - remainder(n - c - k) - remainder(n);
    }

    /** {@code (n − x) log((n − x) / n)}. */
    private static double scaled(long n, long x) {
        return n == x ? 0.0 : (n - x) * Math.log1p(-(double) x / n);
    }

    /** {@code log x! − (x log x − x)}. */
    private static double remainder(long x) {
        if (x < 32) {
            double log = 0.0;
            for (long i = 2; i <= x; i++) {
                log += Math.log(i);
            }
            return x == 0 ? 0.0 : log - (x * Math.log(x) - x);
        }
        double inverse = 1.0 / x;
        return 0.5 * Math.log(2 * Math.PI * x) + inverse / 12 - inverse * inverse * inverse / 360;
    }
}
