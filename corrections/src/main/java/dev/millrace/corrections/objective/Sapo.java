package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.positive;

/**
 * SAPO: a soft gate instead of a clip, per token {@code ℓ = −A · (4/τ) σ(τ (r − 1))}, {@code τ = τ_pos} where
 * {@code A > 0} and {@code τ_neg} otherwise.
 *
 * <p>Unit of correction: token. The derivative is {@code −A · 4 σ(1 − σ) · r}: on-policy exactly {@code −A}, fading
 * smoothly on both sides instead of falling to 0 at a bound. The log ratio is bounded to ±20 (derivative 0 beyond). A larger {@code τ_neg} fades the push against a token sooner. Metrics:
 * approximate KL; nothing is clipped.
 *
 * <p>Source: arXiv 2511.20347, which averages over tokens within sequences; AReaL averages over tokens.
 *
 * @param anchor policy to compare with
 * @param tauPos gate temperature at a positive advantage
 * @param tauNeg gate temperature otherwise; larger fades sooner
 */
public record Sapo(Anchor anchor, double tauPos, double tauNeg) implements Objective {
    public Sapo {
        positive("tau_pos", tauPos);
        positive("tau_neg", tauNeg);
    }

    public static Sapo defaults() {
        return new Sapo(Anchor.PROXIMAL, 1, 1.05);
    }

    @Override
    public LossAggregation publishedAggregation() {
        return new LossAggregation.SeqMeanTokenMean();
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        SoftGate gate = new SoftGate(tauPos, tauNeg);
        TokenRule rule = (current, anchored, advantage, term) -> {
            term.logRatio = BoundedLogRatio.of(current, anchored);
            gate.apply(Math.exp(term.logRatio), advantage, term);
            term.derivative *= BoundedLogRatio.slope(current, anchored);
            term.acted = term.logRatio != 0;
        };
        return new TokenwiseLoss(input, facts.coefficients(input.batch()))
                .apply(rule, input.requireProximal("SAPO"))
                .withClipMetrics();
    }
}
