package dev.millrace.corrections.kl;

import dev.millrace.corrections.kl.KlTerms.Term;

/**
 * How one divergence is estimated for one purpose, and only in ways that serve it.
 *
 * <p>Say which divergence, who sampled the tokens and what the number is for; {@link #of} answers with the estimator of
 * least variance that is right there. {@link #insisting} takes an estimator and a weighting of the caller's choice and
 * refuses those that would optimise or report something else, saying what. See the package's table.
 *
 * <p>Immutable and thread-safe.
 */
public final class KlPlan {
    private final KlDivergence divergence;
    private final KlSampling sampling;
    private final KlUse use;
    private final Term term;

    private KlPlan(KlDivergence divergence, KlSampling sampling, KlUse use, Term term) {
        this.divergence = divergence;
        this.sampling = sampling;
        this.use = use;
        this.term = term;
    }

    /**
     * The right estimator of least variance.
     *
     * @throws KlMisuseException where there is none: a reward penalty needs tokens the policy, or one it can be weighed
     *     against, sampled
     */
    public static KlPlan of(KlDivergence divergence, KlSampling sampling, KlUse use) {
        return new KlPlan(divergence, sampling, use, KlTerms.best(divergence, sampling, use));
    }

    /**
     * The caller's estimator, if it is right.
     *
     * @throws KlMisuseException saying what it would do instead, and what to use
     */
    public static KlPlan insisting(
            KlDivergence divergence, KlSampling sampling, KlUse use, KlEstimator estimator, KlWeighting weighting) {
        KlRules.require(divergence, sampling, use, estimator, weighting);
        return new KlPlan(divergence, sampling, use, KlTerms.of(estimator, weighting));
    }

    public KlDivergence divergence() {
        return divergence;
    }

    public KlSampling sampling() {
        return sampling;
    }

    public KlUse use() {
        return use;
    }

    /** The formula in the package's letters, such as {@code w (k3), gradient w d}. */
    public String formula() {
        return term.formula();
    }

    Term term() {
        return term;
    }

    @Override
    public String toString() {
        return divergence + " KL from tokens of the " + sampling + " policy as " + use + ": " + formula();
    }
}
