package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.positive;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.weights.AspoWeights;

/**
 * ASPO: the policy gradient {@code ℓ = −sg[w] A log π} under the ratio to the behavior policy, flipped for positive
 * advantages and masked where PPO would clip.
 *
 * <p>Unit of correction: token. The derivative is {@code −w A}. Metrics: approximate KL to the behavior policy.
 *
 * <p>Source: see {@link AspoWeights}.
 *
 * @param clipRatioLow clip range below 1; below 1
 * @param clipRatioHigh clip range above 1
 * @param cap largest weight
 */
public record Aspo(double clipRatioLow, double clipRatioHigh, double cap) implements Objective {
    public Aspo {
        if (!(clipRatioLow > 0 && clipRatioLow < 1)) {
            throw new IllegalArgumentException("clip_ratio_low must be above 0 and below 1: " + clipRatioLow);
        }
        positive("clip_ratio_high", clipRatioHigh);
        if (!(cap >= 1 && cap < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("cap must be at least 1 and finite: " + cap);
        }
    }

    public static Aspo defaults() {
        return new Aspo(0.2, 0.2, 3);
    }

    @Override
    public CorrectionUnit unit() {
        return weights().unit();
    }

    @Override
    public Anchor anchor() {
        return Anchor.BEHAVIOR;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return SignedWeights.policyGradient(weights(), input, facts);
    }

    private AspoWeights weights() {
        return new AspoWeights(clipRatioLow, clipRatioHigh, cap);
    }
}
