package dev.millrace.learner.step;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.kl.KlResult;
import dev.millrace.corrections.kl.KlTermEvaluation;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.ObjectiveResult;
import dev.millrace.corrections.objective.UpdateFacts;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.policy.weights.Weights;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The loss of one update, objective, KL term and entropy bonus together, as what differentiation asks for: a coefficient for
 * every log-prob and every entropy of the minibatch, packed as its layout is. Changes no weights.
 */
final class UpdateLoss {
    private final Algorithm algorithm;
    private final GradientShards shards;

    /** @param shards score the minibatch where the objective needs current log-probs; borrowed */
    UpdateLoss(Algorithm algorithm, GradientShards shards) {
        this.algorithm = algorithm;
        this.shards = shards;
    }

    /**
     * What an update's gradient is made with: a coefficient for every log-prob and every entropy.
     *
     * @param result of the objective; at stand-ins for the current log-probs where the loss is linear in them
     * @param kl     divergence from the reference in the loss; null without one
     */
    record Coefficients(
            UpdateFacts facts,
            ObjectiveResult result,
            @Nullable KlResult kl,
            float[] coefficients,
            double[] aggregation,
            double entropyCoefficient,
            float[] entropyCoefficients) {}

    /** Those of an update from these weights; counts what the forward pass took, if one is needed. */
    Coefficients coefficients(
            TrainingBatch batch,
            Minibatch minibatch,
            StepStart.Started start,
            Weights weights,
            long optimizerSteps,
            ControlState controls,
            StepMetricsTally means) {
        TokenBatch layout = minibatch.layout();
        Objective objective = algorithm.objective();
        UpdateFacts facts = minibatch.facts(algorithm.aggregation(), optimizerSteps, controls);
        // for an objective linear in the log-probs any finite ones give the coefficients, and the real ones come out of
        // the
        // backward pass
        float[] current =
                algorithm.needsCurrentLogProbs() ? currentLogProbs(minibatch, weights, means) : minibatch.proximal();
        ObjectiveResult result = objective.evaluate(minibatch.input(objective, current), facts);
        KlResult kl = klInLoss(minibatch, current);
        float[] coefficients = kl == null
                ? result.gradient()
                : kl.addedTo(result, start.klCoefficient()).gradient();
        double entropyCoefficient = algorithm.entropy().coefficient(batch.meanReward());
        double[] aggregation = facts.coefficients(layout);
        return new Coefficients(
                facts,
                result,
                kl,
                coefficients,
                aggregation,
                entropyCoefficient,
                entropyCoefficients(layout, aggregation, entropyCoefficient));
    }

    /** Those of the step's start serve the first update, whose weights they are of. */
    private float[] currentLogProbs(Minibatch minibatch, Weights weights, StepMetricsTally means) {
        float[] known = means.updates() == 1 ? minibatch.startLogProbs() : null;
        if (known != null) {
            return known;
        }
        long begun = System.nanoTime();
        float[] scored = shards.score(weights, minibatch.sequences()).logProbs();
        means.addForward(begun);
        return scored;
    }

    private @Nullable KlResult klInLoss(Minibatch minibatch, float[] current) {
        if (!(algorithm.kl() instanceof KlConfig.InLoss loss)) {
            return null;
        }
        return new KlTermEvaluation(loss.plan(), algorithm.aggregation())
                .evaluate(
                        minibatch.layout(),
                        current,
                        Objects.requireNonNull(minibatch.reference()),
                        minibatch.behavior());
    }

    private static float[] entropyCoefficients(TokenBatch layout, double[] aggregation, double bonus) {
        float[] coefficients = new float[layout.tokenCount()];
        for (int s = 0; s < layout.sequenceCount(); s++) {
            for (int t = layout.start(s); t < layout.end(s); t++) {
                coefficients[t] = layout.isTrained(t) ? (float) (-bonus * aggregation[s]) : 0f;
            }
        }
        return coefficients;
    }
}
