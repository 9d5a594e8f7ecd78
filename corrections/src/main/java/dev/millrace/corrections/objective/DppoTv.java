package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.atLeastZero;
import static dev.millrace.corrections.objective.Bounds.positive;

/**
 * DPPO with a total-variation trust region. Per token {@code ℓ = −A · sg[min(r, c)] · sg[M] · log π}. {@code M = 1}
 * while the probability has not moved too far in the direction the advantage pushes:
 * {@code π − π_prox <= clipRatioHigh} if {@code A > 0}, {@code π − π_prox >= −low} otherwise.
 *
 * <p>Unit of correction: token. PPO bounds a ratio, so it clips a token of probability 0.001 after a negligible change
 * and a token of 0.9 never. Here the bound is on the change of probability itself (the total variation of the
 * two-outcome distribution "this token or another"). The derivative is {@code −A min(r, c) M}: the ratio is a constant
 * weight, truncated at {@code c}, bounded to e^±20. Metrics: approximate KL, fraction with {@code M = 0}, fraction
 * whose ratio was truncated.
 *
 * <p>Source: arXiv 2602.04879, "binary TV"; the truncation is its section 5.4.
 *
 * @param anchor policy to compare with
 * @param clipRatioLow largest fall of a probability with a gradient
 * @param clipRatioHigh largest rise of a probability with a gradient
 * @param clipRatioC largest ratio that weighs a token
 */
public record DppoTv(Anchor anchor, double clipRatioLow, double clipRatioHigh, double clipRatioC) implements Objective {
    /** Truncation of the ratio; the paper advises a large one, since truncation biases. */
    public static final double DEFAULT_TRUNCATION = 20.0;

    public DppoTv {
        atLeastZero("clip_ratio_low", clipRatioLow);
        atLeastZero("clip_ratio_high", clipRatioHigh);
        positive("clip_ratio_c", clipRatioC);
    }

    public static DppoTv defaults() {
        return new DppoTv(Anchor.PROXIMAL, 0.2, 0.2, DEFAULT_TRUNCATION);
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return new TokenwiseLoss(input, facts.coefficients(input.batch()))
                .apply(this::token, input.requireProximal("DPPO-TV"))
                .withClipMetrics();
    }

    private void token(double current, double proximal, double advantage, TokenTerm term) {
        double rise = Math.exp(current) - Math.exp(proximal);
        boolean inside = advantage > 0 ? rise <= clipRatioHigh : rise >= -clipRatioLow;
        maskedPolicyGradient(current, proximal, advantage, inside, clipRatioC, term);
    }

    /** What the two trust regions of DPPO share: the masked gradient they end in. */
    static void maskedPolicyGradient(
            double current, double proximal, double advantage, boolean inside, double truncation, TokenTerm term) {
        term.logRatio = BoundedLogRatio.of(current, proximal);
        double ratio = Math.exp(term.logRatio);
        double weight = inside ? Math.min(ratio, truncation) : 0.0;
        term.loss = -advantage * weight * current;
        term.derivative = -advantage * weight;
        term.clipped = !inside;
        term.lowerClipped = inside && ratio > truncation;
    }
}
