package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.positive;

import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Oapl;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.learner.objective.AggregationConfig.SeqMeanTokenMean;

/**
 * OAPL: regression of the sequence's log ratio to the behavior policy onto the optimal advantage; a mean over sequences.
 *
 * @param beta temperature of the regression
 */
public record OaplConfig(double beta) implements ObjectiveConfig {
    public OaplConfig {
        positive("beta", beta);
    }

    public static OaplConfig defaults() {
        return new OaplConfig(0.1);
    }

    @Override
    public AggregationConfig aggregation() {
        return new SeqMeanTokenMean();
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new Oapl(beta, GlobalBatch.WHOLE);
    }

    @Override
    public Anchor anchor() {
        return Anchor.BEHAVIOR;
    }

    @Override
    public boolean regressesOnOptimalAdvantage() {
        return true;
    }
}
