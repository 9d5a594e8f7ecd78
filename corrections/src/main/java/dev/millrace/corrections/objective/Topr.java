package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * TOPR: the policy gradient {@code ℓ = −sg[w] A log π} with {@code w = clip(prod_t rho_t, lower, upper)}, {@code [1, 1]} for
 * good answers and {@code [0, 1]} for bad ones; rho is current / behavior.
 *
 * <p>Unit of correction: sequence; advantages of one sequence must have one sign. Good answers are imitated even if
 * another policy wrote them. Bad ones are pushed down only as far as the policy would still write them, so the push
 * fades instead of driving log-probs to −∞. The derivative is {@code −w A}. Metrics: approximate KL to the behavior
 * policy.
 *
 * <p>The product runs over trained tokens, in log space; its log is bounded to {@code [-20, 20]}.
 *
 * <p>Source: Le Roux et al., <i>Tapered Off-Policy REINFORCE</i>, arXiv 2503.14286, with its canonical tapers.
 */
public record Topr() implements BehaviorObjective {
    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return SignedWeights.perSequence(
                "TOPR",
                (logRatio, good) -> good ? 1.0 : Math.min(1.0, Math.exp(LogRatio.bounded(logRatio))),
                input,
                facts);
    }
}
