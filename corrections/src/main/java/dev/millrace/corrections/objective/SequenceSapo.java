package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;

/**
 * SAPO's soft gate on the sequence's ratio: {@code ℓ = −A (4/τ) σ(τ (s − 1))}, {@code s = exp(mean_t(current −
 * proximal))}.
 *
 * <p>Unit of correction: sequence; advantage, weight and gradient as in {@link Gspo}, gate as in {@link Sapo}. The log
 * ratio is not bounded. Metrics: approximate KL; nothing is clipped.
 *
 * <p>Source: AReaL's {@code sapo_loss_fn} with {@code importance_sampling_level: sequence}.
 */
public final class SequenceSapo implements Objective {
    private final SoftGate gate;
    private final LossAggregation aggregation;

    /**
     * @param tauPositive temperature for positive advantages; positive
     * @param tauNegative temperature for the others; positive
     */
    public SequenceSapo(double tauPositive, double tauNegative, LossAggregation aggregation) {
        this.gate = new SoftGate(tauPositive, tauNegative);
        this.aggregation = aggregation;
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        return new SequencewiseLoss(input, aggregation)
                .apply((x, advantage, term) -> gate.apply(Math.exp(x), advantage, term), input.requireProximal("SAPO"))
                .withClipMetrics();
    }
}
