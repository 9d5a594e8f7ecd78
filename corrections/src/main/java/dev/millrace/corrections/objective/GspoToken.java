package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;

/**
 * GSPO-token: the sequence's ratio with the token's gradient, {@code s_t = sg[s] · π_t / sg[π_t]}, in PPO's clipped
 * surrogate with an advantage per token: {@code ℓ = max(−A_t s_t, −A_t clip(s_t))}.
 *
 * <p>Unit of correction: sequence, for the ratio; advantages and gradients are per token. In value {@code s_t} is the
 * geometric mean {@code s = exp(mean_t(current − proximal))}; in derivative it is the token's alone, so a token
 * receives {@code −A_t s} where it is not clipped. With one advantage per sequence this is {@link Gspo}. The mean log
 * ratio is bounded to 10 above (derivative 0 beyond), as in verl. Metrics: approximate KL (of the tokens' own ratios),
 * clipped fraction.
 *
 * <p>Source: Zheng et al. 2025 (arXiv 2507.18071), section on GSPO-token; what verl calls {@code gspo}, which always
 * aggregates by {@link LossAggregation.SequenceMeanTokenMean}.
 */
public final class GspoToken implements Objective {
    private static final double LOG_RATIO_BOUND = 10.0;

    private final ClippedSurrogate surrogate;
    private final LossAggregation aggregation;

    public GspoToken(ClipRange range, LossAggregation aggregation) {
        this.surrogate = new ClippedSurrogate(range, Double.POSITIVE_INFINITY);
        this.aggregation = aggregation;
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        float[] proximal = input.requireProximal("GSPO-token");
        SequenceMeans means = SequenceMeans.of(input, proximal);
        TokenRule rule = (current, anchor, advantage, term) -> {
            double x = means.logRatio(term.sequence);
            surrogate.apply(Math.exp(Math.min(x, LOG_RATIO_BOUND)), advantage, term);
            term.derivative *= x <= LOG_RATIO_BOUND ? 1.0 : 0.0;
            term.logRatio = current - anchor;
        };
        return new TokenwiseLoss(input, aggregation).apply(rule, proximal).withClipMetrics();
    }
}
