package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.r2vpo.RatioVariancePenalty;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * R²VPO: the surrogate under a penalty on the variance of its ratio in the place of clipping, per token
 * {@code ℓ = −(ρ A − λ (ρ − 1)²)} with {@code ρ = current / proximal}.
 *
 * <p>Unit of correction: token. The derivative is {@code −ρ (A − 2 λ (ρ − 1))}, which turns at {@code ρ = 1 + A / (2 λ)}; 0 where
 * the log ratio is beyond ±20. Metrics: approximate KL, and {@value #RATIO_VARIANCE}, by which a {@link
 * dev.millrace.corrections.r2vpo.VarianceMultiplier} moves λ between updates.
 *
 * <p>Source: see {@link RatioVariancePenalty}'s package.
 */
public final class R2vpo implements Objective {
    /** Mean over trained tokens of {@code (ρ − 1)²}. */
    public static final String RATIO_VARIANCE = "ratio_variance";

    private final RatioVariancePenalty penalty;
    private final LossAggregation aggregation;

    public R2vpo(RatioVariancePenalty penalty, LossAggregation aggregation) {
        this.penalty = penalty;
        this.aggregation = aggregation;
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        double[] squares = new double[1];
        ObjectiveResult result = new TokenwiseLoss(input, aggregation)
                .apply(
                        (current, proximal, advantage, term) -> squares[0] += token(current, proximal, advantage, term),
                        input.requireProximal("R2VPO"))
                .withKlMetric();
        Map<String, Double> metrics = new LinkedHashMap<>(result.metrics());
        metrics.put(RATIO_VARIANCE, squares[0] / Math.max(1, input.batch().trainedTokens()));
        return new ObjectiveResult(result.loss(), result.gradient(), result.clipFlags(), metrics);
    }

    /** The token's part of the variance. */
    private double token(double current, double proximal, double advantage, TokenTerm term) {
        term.logRatio = LogRatio.bounded(current - proximal);
        term.loss = -penalty.value(current - proximal, advantage);
        term.derivative = -penalty.gradient(current - proximal, advantage);
        double deviation = Math.expm1(term.logRatio);
        return deviation * deviation;
    }
}
