package dev.millrace.corrections.kl;

import dev.millrace.corrections.ratio.LogRatio;

/** The terms a plan evaluates at each token. */
final class KlTerms {
    private KlTerms() {}

    /** One token's value and d value / d log current, given {@code d} and the weight {@code w}. */
    interface Formula {
        double of(double d, double w);
    }

    /** @param weighted whether {@code w} is used, so that behavior log-probs are needed */
    record Term(String formula, boolean weighted, Formula value, Formula derivative) {}

    static Term best(KlDivergence divergence, KlSampling sampling, KlUse use) {
        boolean reverse = divergence == KlDivergence.REVERSE;
        if (use == KlUse.REWARD) {
            return bestPenalty(reverse, sampling);
        }
        return switch (sampling) {
            case CURRENT ->
                reverse
                        ? new Term("k3, gradient d", false, (d, w) -> KlForm.K3.value(d), (d, w) -> d)
                        : new Term(
                                "r log r − r + 1, gradient 1 − r", false, (d, w) -> forward(d), (d, w) -> oneMinusR(d));
            case BEHAVIOR ->
                reverse
                        ? new Term("w k3, gradient w d", true, (d, w) -> w * KlForm.K3.value(d), (d, w) -> w * d)
                        : new Term(
                                "w (r log r − r + 1), gradient w (1 − r)",
                                true,
                                (d, w) -> w * forward(d),
                                (d, w) -> w * oneMinusR(d));
            case REFERENCE ->
                reverse
                        ? new Term(
                                "k3 / r, gradient d / r",
                                false,
                                (d, w) -> KlForm.K3.value(d) * overR(d),
                                (d, w) -> d * overR(d))
                        : new Term("1/r − 1 − d, gradient −1", false, (d, w) -> KlForm.K3.value(-d), (d, w) -> -1.0);
        };
    }

    private static Term bestPenalty(boolean reverse, KlSampling sampling) {
        if (sampling == KlSampling.REFERENCE) {
            throw new KlMisuseException("a penalty in the reward works through the policy gradient, so its tokens must"
                    + " be the policy's or be weighed against it; tokens of the reference have neither");
        }
        return reverse
                ? new Term("k1 as penalty, not differentiated", false, (d, w) -> d, (d, w) -> 0.0)
                : new Term("1 − r as penalty, not differentiated", false, (d, w) -> oneMinusR(d), (d, w) -> 0.0);
    }

    /** What the caller insists on. */
    static Term of(KlEstimator estimator, KlWeighting weighting) {
        String name = (estimator.straightThrough()
                ? estimator.form() + "+"
                : estimator.form().toString());
        return switch (weighting) {
            case NONE -> new Term(name, false, (d, w) -> estimator.value(d), (d, w) -> estimator.derivative(d));
            case DETACHED ->
                new Term(
                        "sg[w] " + name, true, (d, w) -> w * estimator.value(d), (d, w) -> w * estimator.derivative(d));
            // the weight is current / behavior, so d w / d log current = w
            case LIVE ->
                new Term(
                        "w " + name,
                        true,
                        (d, w) -> w * estimator.value(d),
                        (d, w) -> w * (estimator.value(d) + estimator.derivative(d)));
        };
    }

    private static double oneMinusR(double d) {
        return -Math.expm1(-LogRatio.bounded(d));
    }

    private static double overR(double d) {
        return Math.exp(LogRatio.bounded(d));
    }

    /** {@code r log r − r + 1}, not negative: E_q of it is KL(p‖q), the last two terms being a control variate. */
    private static double forward(double d) {
        double bounded = LogRatio.bounded(d);
        return -bounded * Math.exp(-bounded) + oneMinusR(bounded);
    }
}
