package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.positive;

/**
 * SAPO's soft gate on the sequence's ratio: {@code ℓ = −A (4/τ) σ(τ (s − 1))}, {@code s = exp(mean_t(current −
 * proximal))}.
 *
 * <p>Unit of correction: sequence; advantage, weight and gradient as in {@link Gspo}, gate as in {@link Sapo}. The log
 * ratio is not bounded. Metrics: approximate KL; nothing is clipped.
 *
 * <p>Source: AReaL's {@code sapo_loss_fn} with {@code importance_sampling_level: sequence}.
 *
 * @param anchor policy to compare with
 * @param tauPos gate temperature at a positive advantage
 * @param tauNeg gate temperature otherwise; larger fades sooner
 */
public record SequenceSapo(Anchor anchor, double tauPos, double tauNeg) implements SequenceObjective {
    public SequenceSapo {
        positive("tau_pos", tauPos);
        positive("tau_neg", tauNeg);
    }

    public static SequenceSapo defaults() {
        return new SequenceSapo(Anchor.PROXIMAL, 1, 1.05);
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        SoftGate gate = new SoftGate(tauPos, tauNeg);
        return new SequencewiseLoss(input, facts.coefficients(input.batch()))
                .apply(
                        (x, advantage, term) -> {
                            gate.apply(Math.exp(x), advantage, term);
                            term.acted = x != 0;
                        },
                        input.requireProximal("SAPO"))
                .withClipMetrics();
    }
}
