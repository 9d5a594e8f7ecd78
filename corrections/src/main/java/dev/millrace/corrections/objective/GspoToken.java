package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.atLeastZero;

/**
 * GSPO-token: the sequence's ratio with the token's gradient, {@code ℓ_t = max(−A_t s_t, −A_t clip(s_t))} with
 * {@code s_t = sg[s] π_t / sg[π_t]}. In value a token's ratio is the sequence's geometric mean
 * {@code s = exp(mean_t(current − anchor))}; in derivative it is the token's alone, so a token receives {@code −A_t s}
 * where it is not clipped. With one advantage per sequence this is {@link Gspo}. The mean log ratio is bounded to 10
 * above (derivative 0 beyond), as in verl. Metrics: approximate KL (of the tokens' own ratios), clipped fraction.
 *
 * <p>Unit of correction: sequence.
 *
 * <p>Source: Zheng et al. 2025 (arXiv 2507.18071), section on GSPO-token; what verl calls {@code gspo}, which always
 * aggregates by {@link LossAggregation.SeqMeanTokenMean}.
 *
 * @param anchor policy to compare with
 * @param clipRatioLow lower clip: sequence ratio {@code 1 - clip_ratio_low}
 * @param clipRatioHigh upper clip: ratio {@code 1 + clip_ratio_high}
 */
public record GspoToken(Anchor anchor, double clipRatioLow, double clipRatioHigh) implements SequenceObjective {
    private static final double LOG_RATIO_BOUND = 10.0;

    public GspoToken {
        atLeastZero("clip_ratio_low", clipRatioLow);
        atLeastZero("clip_ratio_high", clipRatioHigh);
    }

    public static GspoToken defaults() {
        return new GspoToken(Anchor.PROXIMAL, 3e-4, 4e-4);
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        float[] proximal = input.requireProximal("GSPO-token");
        ClippedSurrogate surrogate = new ClippedSurrogate(clipRatioLow, clipRatioHigh);
        SequenceMeans means = SequenceMeans.of(input, proximal);
        TokenRule rule = (current, anchored, advantage, term) -> {
            double x = means.logRatios()[term.sequence];
            surrogate.apply(Math.exp(Math.min(x, LOG_RATIO_BOUND)), advantage, term);
            term.derivative *= x <= LOG_RATIO_BOUND ? 1.0 : 0.0;
            term.logRatio = current - anchored;
        };
        return new TokenwiseLoss(input, facts.coefficients(input.batch()))
                .apply(rule, proximal)
                .withClipMetrics();
    }
}
