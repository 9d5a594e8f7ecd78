package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.atLeastZero;
import static dev.millrace.corrections.objective.Bounds.positive;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.stage.ControlState;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * R²VPO: the surrogate with a penalty on the variance of its ratio instead of clipping. Per token
 * {@code ℓ = −(ρ A − λ (ρ − 1)²)} with {@code ρ = current / proximal}.
 *
 * <p>Unit of correction: token. The derivative is {@code −ρ (A − 2 λ (ρ − 1))}, which turns at
 * {@code ρ = 1 + A / (2 λ)}; 0 where the log ratio is beyond ±20. Metrics: approximate KL, and
 * {@value #RATIO_VARIANCE}. A {@link dev.millrace.corrections.objective.VarianceMultiplier} uses the latter to adjust λ
 * between updates.
 *
 * <p>Source: see {@link RatioVariancePenalty}'s package.
 *
 * @param anchor policy to compare with
 * @param multiplier multiplier of the penalty at the first update
 * @param budget target variance of the ratio over trained tokens, positive
 * @param rate multiplier change per unit of excess variance; 0 fixes it
 * @param smallest smallest multiplier, positive
 * @param largest largest multiplier
 */
public record R2vpo(Anchor anchor, double multiplier, double budget, double rate, double smallest, double largest)
        implements Objective {
    /** Mean over trained tokens of {@code (ρ − 1)²}. */
    public static final String RATIO_VARIANCE = "ratio_variance";

    /** Under which the multiplier is remembered. */
    static final String MULTIPLIER = "objective.r2vpo.multiplier";

    public R2vpo {
        positive("budget", budget);
        atLeastZero("rate", rate);
        positive("smallest", smallest);
        if (!(smallest <= multiplier && multiplier <= largest && largest < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "smallest <= multiplier <= largest must hold, and largest be finite: smallest=" + smallest
                            + ", multiplier=" + multiplier + ", largest=" + largest);
        }
    }

    public static R2vpo defaults() {
        return new R2vpo(Anchor.PROXIMAL, 1, 0.02, 1, 0.01, 100);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public ControlState remembered(ControlState controls, ObjectiveResult result) {
        if (rate == 0) {
            return controls;
        }
        return controls.with(
                MULTIPLIER,
                new VarianceMultiplier(now(controls), budget, rate, smallest, largest)
                        .after(Objects.requireNonNull(result.metrics().get(RATIO_VARIANCE), RATIO_VARIANCE))
                        .multiplier());
    }

    private double now(ControlState controls) {
        return Math.max(smallest, Math.min(largest, controls.get(MULTIPLIER).orElse(multiplier)));
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        RatioVariancePenalty penalty = new RatioVariancePenalty(now(facts.controls()));
        double[] squares = new double[1];
        ObjectiveResult result = new TokenwiseLoss(input, facts.coefficients(input.batch()))
                .apply(
                        (current, proximal, advantage, term) ->
                                squares[0] += token(penalty, current, proximal, advantage, term),
                        input.requireProximal("R2VPO"))
                .withKlMetric();
        Map<String, Double> metrics = new LinkedHashMap<>(result.metrics());
        metrics.put(RATIO_VARIANCE, squares[0] / Math.max(1, input.batch().trainedTokens()));
        return result.withMetrics(metrics);
    }

    /** The token's part of the variance. */
    private static double token(
            RatioVariancePenalty penalty, double current, double proximal, double advantage, TokenTerm term) {
        term.logRatio = LogRatio.bounded(current - proximal);
        term.loss = -penalty.value(current - proximal, advantage);
        term.derivative = -penalty.gradient(current - proximal, advantage);
        term.acted = term.logRatio != 0;
        double deviation = Math.expm1(term.logRatio);
        return deviation * deviation;
    }
}
