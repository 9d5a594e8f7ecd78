package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;

/**
 * CISPO: the ratio is clipped as a weight, not as an objective: per token
 * {@code ℓ = −sg[clip(r, 1−ε_low, 1+ε_high)] A log π}.
 *
 * <p>Unit of correction: token. Every token keeps a gradient, {@code −A clip(r)}, also those PPO would silence: rare
 * tokens that turn an argument around are exactly the ones whose ratio moves first. Ratios are bounded to e^±20 before.
 * Metrics: approximate KL, fraction whose ratio was clipped.
 *
 * <p>Source: MiniMax-M1 (arXiv 2506.13585). The paper advises no lower bound: {@code ε_low = 1} gives that.
 */
public final class Cispo implements Objective {
    private final ClipRange range;
    private final LossAggregation aggregation;

    public Cispo(ClipRange range, LossAggregation aggregation) {
        this.range = range;
        this.aggregation = aggregation;
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        return new TokenwiseLoss(input, aggregation)
                .apply(this::token, input.requireProximal("CISPO"))
                .withClipMetrics();
    }

    private void token(double current, double proximal, double advantage, TokenTerm term) {
        term.logRatio = BoundedLogRatio.of(current, proximal);
        double ratio = Math.exp(term.logRatio);
        double weight = range.clip(ratio);
        term.loss = -weight * advantage * current;
        term.derivative = -weight * advantage;
        term.clipped = weight != ratio;
    }
}
