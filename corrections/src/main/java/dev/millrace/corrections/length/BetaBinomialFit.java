package dev.millrace.corrections.length;

/**
 * A Beta distribution of solve rates fitted to counts of solved samples, and the pass@k it predicts:
 * {@code 1 − B(α, β + k) / B(α, β)}.
 *
 * <p>Unit: set of problems. Each problem's solve rate is a draw from Beta(α, β), its c of n solved samples a binomial
 * of that; α and β maximise the likelihood. So a problem that was never solved is predicted from how often such
 * problems turn out solvable. Rare solvability, {@code α < 1}, makes pass@k rise like a power of k instead of jumping
 * to 1.
 *
 * <p>Source: Kazdan et al. 2025 (arXiv 2510.05197).
 *
 * @param alpha weight of success; positive
 * @param beta weight of failure; positive
 * @param logLikelihood of the counts, without the binomial coefficients
 * @param concentrated whether the counts vary at most as much as binomials of one rate would: then α + β has no finite
 *     optimum, and the fit is the common rate at some large concentration
 */
public record BetaBinomialFit(double alpha, double beta, double logLikelihood, boolean concentrated) {
    private static final double LARGEST_CONCENTRATION = 1e7;
    private static final double SMALLEST = 1e-8;
    private static final int LARGEST_STEPS = 500;
    private static final double CONVERGED = 1e-9;
    /** Log-likelihood per problem below which a spread explains nothing that a common rate does not. */
    private static final double NO_GAIN = 1e-6;

    /**
     * Fits counts of solved samples.
     *
     * @param samples n of each problem, at least 1; one at least must be 2 or more
     * @param correct c of each problem, in [0, n]
     * @throws IllegalArgumentException if every sample or none was solved, or no problem has two samples: then nothing
     *     about the spread of solve rates can be known
     * @throws ArithmeticException if the likelihood has no optimum that can be reached
     */
    public static BetaBinomialFit of(long[] samples, long[] correct) {
        requireInformative(samples, correct);
        return new Ascent(samples, correct).run();
    }

    /** Probability that one of k samples of a new problem is correct. */
    public double passAtK(long k) {
        requireK(k);
        return -Math.expm1(LogGamma.betaRatio(alpha, beta, 0, k));
    }

    private static void requireK(long k) {
        if (k < 1) {
            throw new IllegalArgumentException("k must be at least 1: " + k);
        }
    }

    private static void requireInformative(long[] samples, long[] correct) {
        if (samples.length != correct.length) {
            throw new IllegalArgumentException("one count of correct samples per problem: samples=" + samples.length
                    + ", correct=" + correct.length);
        }
        long all = 0;
        long solved = 0;
        long most = 0;
        for (int i = 0; i < samples.length; i++) {
            PassAtK.requireCounts(samples[i], correct[i]);
            all += samples[i];
            solved += correct[i];
            most = Math.max(most, samples[i]);
        }
        if (solved == 0 || solved == all) {
            throw new IllegalArgumentException("a spread of solve rates cannot be fitted where "
                    + (solved == 0 ? "nothing" : "everything") + " was solved: solved=" + solved + ", samples=" + all);
        }
        if (most < 2) {
            throw new IllegalArgumentException("a spread of solve rates needs problems with 2 or more samples");
        }
    }

    /** Newton's method on (log α, log β), with steepest ascent where the likelihood is not concave, steps halved. */
    private static final class Ascent {
        private final long[] samples;
        private final long[] correct;
        private double u;
        private double v;

        Ascent(long[] samples, long[] correct) {
            this.samples = samples;
            this.correct = correct;
            double rate = 0.0;
            for (int i = 0; i < samples.length; i++) {
                rate += (correct[i] + 0.5) / (samples[i] + 1.0) / samples.length;
            }
            this.u = Math.log(rate);
            this.v = Math.log(1 - rate);
        }

        BetaBinomialFit run() {
            double likelihood = likelihood(u, v);
            for (int step = 0; step < LARGEST_STEPS; step++) {
                double[] direction = direction();
                double slope = direction[2];
                if (slope < CONVERGED * samples.length * CONVERGED) {
                    return fit(likelihood);
                }
                double scale = 1.0;
                double next = likelihood(u + direction[0], v + direction[1]);
                while (!(next > likelihood) && scale > 1e-12) {
                    scale /= 2;
                    next = likelihood(u + scale * direction[0], v + scale * direction[1]);
                }
                if (!(next > likelihood)) {
                    return fit(likelihood); // no step improves it by more than rounding
                }
                u += scale * direction[0];
                v += scale * direction[1];
                likelihood = next;
                if (Math.exp(u) + Math.exp(v) > LARGEST_CONCENTRATION) {
                    return fit(likelihood);
                }
                if (Math.exp(Math.min(u, v)) < SMALLEST) {
                    break;
                }
            }
            throw new ArithmeticException("the likelihood of the counts has no optimum within reach: alpha="
                    + Math.exp(u) + ", beta=" + Math.exp(v) + ", problems=" + samples.length);
        }

        private BetaBinomialFit fit(double likelihood) {
            boolean concentrated = likelihood - commonRateLikelihood() < NO_GAIN * samples.length;
            return new BetaBinomialFit(Math.exp(u), Math.exp(v), likelihood, concentrated);
        }

        private double commonRateLikelihood() {
            double solved = 0.0;
            double all = 0.0;
            for (int i = 0; i < samples.length; i++) {
                solved += correct[i];
                all += samples[i];
            }
            return solved * Math.log(solved / all) + (all - solved) * Math.log1p(-solved / all);
        }

        private double likelihood(double logAlpha, double logBeta) {
            double sum = 0.0;
            for (int i = 0; i < samples.length; i++) {
                sum += LogGamma.betaRatio(Math.exp(logAlpha), Math.exp(logBeta), correct[i], samples[i] - correct[i]);
            }
            return sum;
        }

        /** The step in u and in v, and the gain it promises to first order. */
        private double[] direction() {
            double a = Math.exp(u);
            double b = Math.exp(v);
            double ga = 0.0;
            double gb = 0.0;
            double haa = 0.0;
            double hbb = 0.0;
            double hab = 0.0;
            for (int i = 0; i < samples.length; i++) {
                double both = LogGamma.derivative(a + b) - LogGamma.derivative(a + b + samples[i]);
                double both2 = LogGamma.secondDerivative(a + b) - LogGamma.secondDerivative(a + b + samples[i]);
                long wrong = samples[i] - correct[i];
                ga += LogGamma.derivative(a + correct[i]) - LogGamma.derivative(a) + both;
                gb += LogGamma.derivative(b + wrong) - LogGamma.derivative(b) + both;
                haa += LogGamma.secondDerivative(a + correct[i]) - LogGamma.secondDerivative(a) + both2;
                hbb += LogGamma.secondDerivative(b + wrong) - LogGamma.secondDerivative(b) + both2;
                hab += both2;
            }
            double gu = a * ga;
            double gv = b * gb;
            double huu = a * a * haa + gu;
            double hvv = b * b * hbb + gv;
            double huv = a * b * hab;
            double determinant = huu * hvv - huv * huv;
            double du = gu;
            double dv = gv;
            if (huu < 0 && determinant > 0) {
                du = (-gu * hvv + gv * huv) / determinant;
                dv = (gu * huv - gv * huu) / determinant;
            }
            double longest = Math.max(1.0, Math.max(Math.abs(du), Math.abs(dv))); // a factor of e at most per step
            return new double[] {du / longest, dv / longest, gu * du + gv * dv};
        }
    }

    /** log Γ and its first two derivatives for positive arguments, by recurrence up to 12 and Stirling's series beyond. */
    static final class LogGamma {
        private static final double SERIES_FROM = 12.0;

        private LogGamma() {}

        static double value(double x) {
            double shift = 0.0;
            double y = x;
            while (y < SERIES_FROM) {
                shift += Math.log(y);
                y++;
            }
            double i = 1 / y;
            double i2 = i * i;
            double series = i * (1.0 / 12 - i2 * (1.0 / 360 - i2 * (1.0 / 1260 - i2 * (1.0 / 1680 - i2 / 1188))));
            return (y - 0.5) * Math.log(y) - y + 0.5 * Math.log(2 * Math.PI) + series - shift;
        }

        static double derivative(double x) {
            double shift = 0.0;
            double y = x;
            while (y < SERIES_FROM) {
                shift += 1 / y;
                y++;
            }
            double i2 = 1 / (y * y);
            double series = i2 * (1.0 / 12 - i2 * (1.0 / 120 - i2 * (1.0 / 252 - i2 * (1.0 / 240 - i2 / 132))));
            return Math.log(y) - 0.5 / y - series - shift;
        }

        static double secondDerivative(double x) {
            double shift = 0.0;
            double y = x;
            while (y < SERIES_FROM) {
                shift += 1 / (y * y);
                y++;
            }
            double i = 1 / y;
            double i2 = i * i;
            double series = i * i2 * (1.0 / 6 - i2 * (1.0 / 30 - i2 * (1.0 / 42 - i2 * (1.0 / 30 - i2 * 5 / 66))));
            return i + 0.5 * i2 + series + shift;
        }

        /** {@code log B(a + x, b + y) − log B(a, b)}. */
        static double betaRatio(double a, double b, double x, double y) {
            return value(a + x) - value(a) + value(b + y) - value(b) - (value(a + b + x + y) - value(a + b));
        }
    }
}
