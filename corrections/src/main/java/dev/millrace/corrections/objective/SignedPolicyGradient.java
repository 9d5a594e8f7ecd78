package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.weights.SignedWeightMethod;
import dev.millrace.corrections.weights.ToprWeights;

/**
 * The policy gradient under weights that treat good and bad answers differently: {@code ℓ = −sg[w] A log π}, {@code w}
 * from the ratio current / behavior and the sign of the advantage.
 *
 * <p>Unit of correction: that of the weights. With {@link ToprWeights} this is TOPR ({@link #topr}): good answers are
 * imitated whoever wrote them, bad ones pushed down only as far as the policy would still write them, so the push fades
 * instead of driving log-probs to −∞. The derivative is {@code −w A}: the weights follow the current policy and are
 * constants of the step. Weights in the input multiply them. Metrics: approximate KL to the behavior policy.
 *
 * <p>Source: TOPR, Le Roux et al. 2025 (arXiv 2503.14286); for others see the weight method.
 */
public final class SignedPolicyGradient implements Objective {
    private final SignedWeightMethod method;
    private final PolicyGradient gradient;

    public SignedPolicyGradient(SignedWeightMethod method, LossAggregation aggregation) {
        this.method = method;
        this.gradient = new PolicyGradient(aggregation);
    }

    /** TOPR with its canonical tapers; advantages of one sequence must have one sign. */
    public static SignedPolicyGradient topr(LossAggregation aggregation) {
        return new SignedPolicyGradient(new ToprWeights(), aggregation);
    }

    @Override
    public CorrectionUnit unit() {
        return method.unit();
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        TokenBatch batch = input.batch();
        float[] behavior = input.requireBehavior("a policy gradient with weights by sign");
        float[] weights = new float[batch.tokenCount()];
        method.compute(batch, LogRatio.full(input.current(), behavior), input.advantages(), weights);
        for (int t = 0; t < weights.length; t++) {
            weights[t] = batch.isTrained(t) ? (float) (weights[t] * input.weight(t)) : 0f;
        }
        return gradient.evaluate(input.withProximal(behavior).withWeights(weights));
    }
}
