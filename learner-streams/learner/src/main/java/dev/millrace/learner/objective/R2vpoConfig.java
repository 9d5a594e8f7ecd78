package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.atLeastZero;
import static dev.millrace.learner.objective.Bounds.positive;

import dev.millrace.corrections.control.ControlState;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.ObjectiveResult;
import dev.millrace.corrections.objective.R2vpo;
import dev.millrace.corrections.r2vpo.RatioVariancePenalty;
import dev.millrace.corrections.r2vpo.VarianceMultiplier;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;
import java.util.Objects;

/**
 * R²VPO: a penalty on the variance of the ratio in the place of clipping. Its multiplier rises after an update whose ratios
 * varied more than the budget, and falls after one that kept it; it is part of the version.
 *
 * @param anchor      the policy that the ratio is taken to
 * @param multiplier  of the penalty at the first update
 * @param budget      largest variance of the ratio wanted, over trained tokens; positive
 * @param rate        how far the multiplier moves for each unit of variance beyond the budget; 0 keeps it where it is
 * @param smallest    lower limit of the multiplier, positive
 * @param largest     upper limit
 * @param aggregation how token losses become one number
 */
public record R2vpoConfig(
        Anchor anchor,
        double multiplier,
        double budget,
        double rate,
        double smallest,
        double largest,
        AggregationConfig aggregation)
        implements ObjectiveConfig {
    /** Under which the multiplier is remembered. */
    static final String MULTIPLIER = "objective.r2vpo.multiplier";

    public R2vpoConfig {
        positive("budget", budget);
        atLeastZero("rate", rate);
        positive("smallest", smallest);
        if (!(smallest <= multiplier && multiplier <= largest && largest < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "smallest <= multiplier <= largest must hold, and largest be finite: smallest=" + smallest
                            + ", multiplier=" + multiplier + ", largest=" + largest);
        }
    }

    public static R2vpoConfig defaults() {
        return new R2vpoConfig(Anchor.PROXIMAL, 1, 0.02, 1, 0.01, 100, new TokenMean());
    }

    private double now(ControlState controls) {
        return Math.max(smallest, Math.min(largest, controls.get(MULTIPLIER).orElse(multiplier)));
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new R2vpo(new RatioVariancePenalty(now(facts.controls())), aggregation.over(GlobalBatch.WHOLE));
    }

    @Override
    public ControlState remembered(ControlState controls, ObjectiveResult result) {
        if (rate == 0) {
            return controls;
        }
        return controls.with(
                MULTIPLIER,
                new VarianceMultiplier(now(controls), budget, rate, smallest, largest)
                        .after(Objects.requireNonNull(result.metrics().get(R2vpo.RATIO_VARIANCE), R2vpo.RATIO_VARIANCE))
                        .multiplier());
    }
}
