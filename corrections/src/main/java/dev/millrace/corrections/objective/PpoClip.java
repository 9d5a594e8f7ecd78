package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * PPO's clipped surrogate with the dual clip: per token {@code ℓ = max(−A r, −A clip(r, 1−ε_low, 1+ε_high))}, and
 * {@code ℓ = min(ℓ, −A c)} where {@code A < 0}; {@code r = exp(current − proximal)}.
 *
 * <p>Unit of correction: token. The derivative is {@code −A r} where the loss is not clipped and 0 where it is. The log
 * ratio is bounded to ±20 (derivative 0 beyond), unless {@link #unbounded} is asked for. The dual clip keeps a token
 * that became {@code c} times likelier although its advantage is negative from dominating the step. Metrics:
 * approximate KL, clipped and dual-clipped fractions.
 *
 * <p>In bypass mode pass the behavior log-probs as proximal and no weights: the ratio already corrects for them. In
 * decoupled mode pass the weights of proximal over behavior.
 *
 * <p>Source: Schulman et al. 2017 (arXiv 1707.06347); dual clip: Ye et al. 2019 (arXiv 1912.09729); asymmetric range:
 * Yu et al. 2025, DAPO (arXiv 2503.14476).
 */
public final class PpoClip implements Objective {
    /** The dual clip bound in use everywhere. */
    public static final double DEFAULT_DUAL_CLIP = 3.0;

    private final ClippedSurrogate surrogate;
    private final double bound;
    private final LossAggregation aggregation;

    private PpoClip(ClipRange range, double dualClip, double bound, LossAggregation aggregation) {
        this.surrogate = new ClippedSurrogate(range, dualClip);
        this.bound = bound;
        this.aggregation = aggregation;
    }

    /**
     * @param dualClip largest ratio that counts against a token with negative advantage; above 1, infinite for none
     */
    public PpoClip(ClipRange range, double dualClip, LossAggregation aggregation) {
        this(range, dualClip, LogRatio.BOUND, aggregation);
    }

    /** With the usual dual clip. */
    public PpoClip(ClipRange range, LossAggregation aggregation) {
        this(range, DEFAULT_DUAL_CLIP, aggregation);
    }

    /** As AReaL has it: the log ratio is not bounded, and a gradient beyond float range is refused. */
    public static PpoClip unbounded(ClipRange range, double dualClip, LossAggregation aggregation) {
        return new PpoClip(range, dualClip, Double.POSITIVE_INFINITY, aggregation);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        return new TokenwiseLoss(input, aggregation)
                .apply(this::token, input.requireProximal("PPO clip"))
                .withClipMetrics();
    }

    private void token(double current, double proximal, double advantage, TokenTerm term) {
        double logRatio = current - proximal;
        term.logRatio = Math.max(-bound, Math.min(bound, logRatio));
        surrogate.apply(Math.exp(term.logRatio), advantage, term);
        term.derivative *= Math.abs(logRatio) <= bound ? 1.0 : 0.0;
    }
}
