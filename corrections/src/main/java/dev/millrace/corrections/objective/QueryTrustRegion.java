package dev.millrace.corrections.objective;

/**
 * The solution of {@code max_rho mean(rho A)} subject to {@code mean(rho log rho) <= budget} and {@code mean(rho) =
 * 1} over the answers of one prompt: {@code rho_i = exp((A_i - offset) / multiplier)}.
 *
 * @param multiplier lambda, positive: large where advantages differ much against the budget, which damps the update
 * @param offset {@code lambda log mean exp(A / lambda)}, which makes the mean ratio 1
 * @param kl {@code mean(rho log rho)} of the solution: the budget if the constraint binds, less otherwise
 * @param binds whether the constraint limits the solution. It does not where all advantages are equal, or the budget
 *     suffices to put all weight on the best answers
 */
public record QueryTrustRegion(double multiplier, double offset, double kl, boolean binds) {

    /**
     * Factor of an answer's gradient, {@code rho (A - offset - lambda log rho)}: the derivative of the Lagrangian
     * with respect to the answer's log-prob. Zero exactly at the target, and pointing back beyond it, where clipping
     * would give no gradient at all.
     *
     * @param logRatio log ratio of the whole answer, current over sampler
     */
    public double coefficient(double advantage, double logRatio) {
        return Math.exp(logRatio) * (advantage - offset - multiplier * logRatio);
    }
}
