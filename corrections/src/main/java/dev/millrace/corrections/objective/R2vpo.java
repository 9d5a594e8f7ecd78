package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.atLeastZero;
import static dev.millrace.corrections.objective.Bounds.positive;

import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.stage.ControlState;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * R²VPO: per token {@code ℓ = −(ρ A − λ (ρ − 1)²)} with {@code ρ = current / proximal}, the surrogate with a penalty on the
 * variance of its ratio instead of clipping.
 *
 * <p>Unit of correction: token. The derivative is {@code −ρ (A − 2 λ (ρ − 1))}, which turns at
 * {@code ρ = 1 + A / (2 λ)}; 0 where the log ratio is beyond ±20. Metrics: approximate KL, and
 * {@value #RATIO_VARIANCE}. Between updates λ moves by {@code rate (variance − budget)} within its limits: dual ascent on
 * {@code variance <= budget}.
 *
 * <p>Where clipping cuts the gradient at one range for all tokens, here it falls linearly and turns: a range that adapts to
 * each token's advantage, and to the batch through λ. A token of large advantage may move far, which is the point of the
 * method.
 *
 * <p>Source: Luo et al. 2026 (arXiv 2601.03320).
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
    public ControlState remembered(ControlState controls, ObjectiveResult result) {
        if (rate == 0) {
            return controls;
        }
        double variance = Objects.requireNonNull(result.metrics().get(RATIO_VARIANCE), RATIO_VARIANCE);
        if (!(variance >= 0.0 && variance < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("variance must be finite and not negative: variance=" + variance);
        }
        return controls.with(MULTIPLIER, within(now(controls) + rate * (variance - budget)));
    }

    private double now(ControlState controls) {
        return within(controls.get(MULTIPLIER).orElse(multiplier));
    }

    private double within(double lambda) {
        return Math.max(smallest, Math.min(largest, lambda));
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        double lambda = now(facts.controls());
        double[] squares = new double[1];
        ObjectiveResult result = new TokenwiseLoss(input, facts.coefficients(input.batch()))
                .apply(
                        (current, proximal, advantage, term) ->
                                squares[0] += token(lambda, current, proximal, advantage, term),
                        input.requireProximal("R2VPO"))
                .withKlMetric();
        Map<String, Double> metrics = new LinkedHashMap<>(result.metrics());
        metrics.put(RATIO_VARIANCE, squares[0] / Math.max(1, input.batch().trainedTokens()));
        return result.withMetrics(metrics);
    }

    /** The token's part of the variance. */
    private static double token(double lambda, double current, double proximal, double advantage, TokenTerm term) {
        term.logRatio = LogRatio.bounded(current - proximal);
        double deviation = Math.expm1(term.logRatio);
        term.loss = -((1.0 + deviation) * advantage - lambda * deviation * deviation);
        term.derivative = Math.abs(current - proximal) >= LogRatio.BOUND
                ? -0.0
                : -((1.0 + deviation) * (advantage - 2.0 * lambda * deviation));
        term.acted = term.logRatio != 0;
        return deviation * deviation;
    }
}
