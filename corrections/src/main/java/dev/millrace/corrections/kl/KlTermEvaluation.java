package dev.millrace.corrections.kl;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * Evaluates a {@link KlPlan} on a batch: one aggregated value, its gradient, and the values per token.
 *
 * <p>Log ratios are bounded to ±20 where they are exponentiated. Context tokens are not read. One pass, O(tokens).
 */
public final class KlTermEvaluation {
    private final KlPlan plan;
    private final LossAggregation aggregation;

    /** @param aggregation how token values become one number, as in the objective the term is added to */
    public KlTermEvaluation(KlPlan plan, LossAggregation aggregation) {
        this.plan = plan;
        this.aggregation = aggregation;
    }

    /**
     * For plans that need no weights.
     *
     * @throws IllegalArgumentException if the plan weighs tokens, so that behavior log-probs are needed
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming the first offending sequence and token
     */
    public KlResult evaluate(TokenBatch batch, float[] current, float[] reference) {
        if (plan.term().weighted()) {
            throw new IllegalArgumentException(plan + " needs the behavior log-probs");
        }
        return evaluate(batch, current, reference, current);
    }

    /** For plans whose tokens were sampled by a behavior policy. */
    public KlResult evaluate(TokenBatch batch, float[] current, float[] reference, float[] behavior) {
        return evaluate(batch, current, reference, behavior, GlobalBatch.WHOLE);
    }

    /** The same for a batch that is a part of a whole. */
    public KlResult evaluate(
            TokenBatch batch, float[] current, float[] reference, float[] behavior, GlobalBatch whole) {
        batch.requireFinite("current log-probs", current);
        batch.requireFinite("reference log-probs", reference);
        batch.requireFinite("behavior log-probs", behavior);
        double[] coefficients = aggregation.coefficients(batch, whole);
        float[] perToken = new float[batch.tokenCount()];
        float[] gradient = new float[batch.tokenCount()];
        double total = 0.0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            double sum = 0.0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double d = (double) current[t] - reference[t];
                    double w = Math.exp(LogRatio.bounded((double) current[t] - behavior[t]));
                    double value = plan.term().value().of(d, w);
                    sum += value;
                    perToken[t] = (float) value;
                    gradient[t] =
                            (float) (coefficients[s] * plan.term().derivative().of(d, w));
                }
            }
            total += coefficients[s] * sum;
        }
        return new KlResult(total, perToken, plan.use() == KlUse.LOSS ? gradient : new float[gradient.length]);
    }
}
