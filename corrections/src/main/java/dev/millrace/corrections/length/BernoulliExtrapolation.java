package dev.millrace.corrections.length;

/**
 * pass@k beyond the samples taken, as if the observed solve rate were the true one: {@code 1 − (1 − c/n)^k}.
 *
 * <p>Unit: problem. Quick, and biased: a problem not solved yet is predicted never to be, and a mean over problems is
 * too low where some are rarely solved. {@link BetaBinomialFit} shares what the other problems teach.
 */
public final class BernoulliExtrapolation {
    private BernoulliExtrapolation() {}

    /**
     * @param samples n, at least 1
     * @param correct c, in [0, n]
     * @param k at least 1, as large as one likes
     */
    public static double passAtK(long samples, long correct, long k) {
        PassAtK.requireCounts(samples, correct);
        if (k < 1) {
            throw new IllegalArgumentException("k must be at least 1: " + k);
        }
        return -Math.expm1(k * Math.log1p(-(double) correct / samples));
    }
}
