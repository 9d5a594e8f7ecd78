package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.weights.ToprWeights;

/**
 * TOPR: the policy gradient {@code ℓ = −sg[w] A log π} in which good answers count once and bad ones {@code min(1, π/μ)}
 * of the whole answer.
 *
 * <p>Unit of correction: sequence; advantages of one sequence must have one sign. Good answers are imitated even if
 * another policy wrote them. Bad ones are pushed down only as far as the policy would still write them, so the push
 * fades instead of driving log-probs to −∞. The derivative is {@code −w A}. Metrics: approximate KL to the behavior
 * policy.
 *
 * <p>Source: Le Roux et al. 2025 (arXiv 2503.14286), with its canonical tapers.
 */
public record Topr() implements Objective {
    @Override
    public CorrectionUnit unit() {
        return new ToprWeights().unit();
    }

    @Override
    public Anchor anchor() {
        return Anchor.BEHAVIOR;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return SignedWeights.policyGradient(new ToprWeights(), input, facts);
    }
}
