package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.aboveOne;
import static dev.millrace.corrections.objective.Bounds.atLeastZero;

/**
 * PPO's clipped surrogate with the dual clip: per token {@code ℓ = max(−A r, −A clip(r, 1−ε_low, 1+ε_high))}, and
 * {@code ℓ = min(ℓ, −A c)} where {@code A < 0}; {@code r = exp(current − anchor)}. verl: vanilla.
 *
 * <p>Unit of correction: token. The derivative is {@code −A r} where the loss is not clipped and 0 where it is. The log
 * ratio is bounded to ±20 (derivative 0 beyond). The dual clip keeps a token that became {@code c} times likelier
 * although its advantage is negative from dominating the step. Metrics: approximate KL, clipped and dual-clipped
 * fractions.
 *
 * <p>In bypass mode pass the behavior log-probs as proximal and no weights: the ratio already corrects for them. In
 * decoupled mode pass the weights of proximal over behavior.
 *
 * <p>Source: Schulman et al. 2017 (arXiv 1707.06347); dual clip: Ye et al. 2019 (arXiv 1912.09729); asymmetric range:
 * Yu et al. 2025, DAPO (arXiv 2503.14476).
 *
 * @param anchor policy to compare with
 * @param clipRatioLow lower clip: ratio {@code 1 - clip_ratio_low}
 * @param clipRatioHigh upper clip: ratio {@code 1 + clip_ratio_high}
 * @param clipRatioC largest ratio at a negative advantage, above 1
 */
public record PpoClip(Anchor anchor, double clipRatioLow, double clipRatioHigh, double clipRatioC)
        implements Objective {
    /** The dual clip bound in use everywhere. */
    public static final double DEFAULT_CLIP_RATIO_C = 3.0;

    public PpoClip {
        atLeastZero("clip_ratio_low", clipRatioLow);
        atLeastZero("clip_ratio_high", clipRatioHigh);
        aboveOne("clip_ratio_c", clipRatioC);
    }

    public static PpoClip defaults() {
        return new PpoClip(Anchor.OLD, 0.2, 0.2, DEFAULT_CLIP_RATIO_C);
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        ClippedSurrogate surrogate = new ClippedSurrogate(clipRatioLow, clipRatioHigh, clipRatioC);
        TokenRule rule = (current, anchored, advantage, term) -> {
            term.logRatio = BoundedLogRatio.of(current, anchored);
            surrogate.apply(Math.exp(term.logRatio), advantage, term);
            term.derivative *= BoundedLogRatio.slope(current, anchored);
        };
        return new TokenwiseLoss(input, facts.coefficients(input.batch()))
                .apply(rule, input.requireProximal("PPO clip"))
                .withClipMetrics();
    }
}
