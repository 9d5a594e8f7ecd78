package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;

/**
 * GSPO: PPO's clipped surrogate of the sequence's ratio, {@code ℓ = max(−A s, −A clip(s))} with the geometric mean
 * {@code s = exp(mean_t(current_t − proximal_t))}.
 *
 * <p>Unit of correction: sequence; a sequence is clipped as a whole. The reward judges the sequence, so the ratio that
 * corrects for it is the sequence's; the root keeps long answers on the scale of short ones. The gradient flows through
 * {@code s}: every trained token receives {@code −A s / n}. The advantage is the mean over the sequence's trained
 * tokens, its weight the sum of theirs under the aggregation's coefficient; with {@link
 * LossAggregation.SequenceMeanTokenMean}, the paper's, that is the mean weight. The clip range must be far narrower than
 * PPO's (3e-4 and 4e-4 in the paper). Metrics as {@link PpoClip}.
 *
 * <p>Source: Zheng et al. 2025 (arXiv 2507.18071). AReaL's {@code importance_sampling_level: sequence} is this with a
 * token mean.
 */
public final class Gspo implements Objective {
    private final ClippedSurrogate surrogate;
    private final LossAggregation aggregation;

    /**
     * @param dualClip largest ratio that counts against a sequence with negative advantage; infinite for none, as the
     *     paper has it
     */
    public Gspo(ClipRange range, double dualClip, LossAggregation aggregation) {
        this.surrogate = new ClippedSurrogate(range, dualClip);
        this.aggregation = aggregation;
    }

    /** As published. */
    public Gspo(ClipRange range) {
        this(range, Double.POSITIVE_INFINITY, new LossAggregation.SequenceMeanTokenMean());
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        return new SequencewiseLoss(input, aggregation)
                .apply(
                        (x, advantage, term) -> surrogate.apply(Math.exp(x), advantage, term),
                        input.requireProximal("GSPO"))
                .withClipMetrics();
    }
}
