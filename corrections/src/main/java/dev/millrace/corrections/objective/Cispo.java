package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.atLeastZero;

/**
 * CISPO: the ratio is clipped as a weight, not as an objective: per token
 * {@code ℓ = −sg[clip(r, 1−ε_low, 1+ε_high)] A log π}.
 *
 * <p>Unit of correction: token. Every token keeps a gradient, {@code −A clip(r)}, also those PPO would silence: rare
 * tokens that turn an argument around are exactly the ones whose ratio moves first. Ratios are bounded to e^±20 before.
 * Metrics: approximate KL, fraction whose ratio was clipped.
 *
 * <p>Source: MiniMax-M1 (arXiv 2506.13585). The paper advises no lower bound: {@code ε_low = 1} gives that.
 *
 * @param anchor policy to compare with
 * @param clipRatioLow smallest weight is {@code 1 - clip_ratio_low}; 1 for no bound
 * @param clipRatioHigh largest weight is {@code 1 + clip_ratio_high}
 */
public record Cispo(Anchor anchor, double clipRatioLow, double clipRatioHigh) implements Objective {
    public Cispo {
        atLeastZero("clip_ratio_low", clipRatioLow);
        atLeastZero("clip_ratio_high", clipRatioHigh);
    }

    public static Cispo defaults() {
        return new Cispo(Anchor.PROXIMAL, 1, 0.2);
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return new TokenwiseLoss(input, facts.coefficients(input.batch()))
                .apply(this::token, input.requireProximal("CISPO"))
                .withClipMetrics();
    }

    private void token(double current, double proximal, double advantage, TokenTerm term) {
        term.logRatio = BoundedLogRatio.of(current, proximal);
        double ratio = Math.exp(term.logRatio);
        double weight = Math.max(1 - clipRatioLow, Math.min(1 + clipRatioHigh, ratio));
        term.loss = -weight * advantage * current;
        term.derivative = -weight * advantage;
        term.clipped = weight != ratio;
    }
}
