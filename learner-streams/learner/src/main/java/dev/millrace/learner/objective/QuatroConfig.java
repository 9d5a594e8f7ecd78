package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.positive;

import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.Quatro;
import dev.millrace.corrections.quatro.QueryMultipliers;
import dev.millrace.learner.objective.AggregationConfig.SeqMeanTokenMean;

/**
 * QUATRO: a trust region for every prompt, whose multiplier is solved for over the prompt's answers. A mean over sequences.
 *
 * @param budget             divergence from the behavior policy allowed for each prompt, in nats, over whole answers; positive
 * @param smallestMultiplier the multiplier where the budget does not bind, and the least one otherwise; positive
 */
public record QuatroConfig(double budget, double smallestMultiplier) implements ObjectiveConfig {
    public QuatroConfig {
        positive("budget", budget);
        positive("smallest_multiplier", smallestMultiplier);
    }

    public static QuatroConfig defaults() {
        return new QuatroConfig(0.05, 0.1);
    }

    @Override
    public AggregationConfig aggregation() {
        return new SeqMeanTokenMean();
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new Quatro(new QueryMultipliers(budget, smallestMultiplier), GlobalBatch.WHOLE);
    }

    @Override
    public Anchor anchor() {
        return Anchor.BEHAVIOR;
    }

    @Override
    public boolean needsWholeGroups() {
        return true;
    }
}
