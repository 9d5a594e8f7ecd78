package dev.millrace.corrections.kl;

import dev.millrace.corrections.objective.ObjectiveResult;

/**
 * An estimated divergence; the arrays belong to the caller.
 *
 * @param value aggregated over the batch
 * @param perToken the estimate at each packed token, 0 at context tokens
 * @param gradient d value / d log current of each packed token; all 0 unless the plan is for a loss
 */
public record KlResult(double value, float[] perToken, float[] gradient) {

    /** {@code objective + coefficient · this}: loss and gradient added, metrics and flags as they were. */
    public ObjectiveResult addedTo(ObjectiveResult objective, double coefficient) {
        if (objective.gradient().length != gradient.length) {
            throw new IllegalArgumentException("objective and divergence are of different batches: tokens="
                    + objective.gradient().length + " and " + gradient.length);
        }
        float[] sum = new float[gradient.length];
        for (int t = 0; t < sum.length; t++) {
            sum[t] = (float) (objective.gradient()[t] + coefficient * gradient[t]);
        }
        return new ObjectiveResult(
                objective.loss() + coefficient * value,
                sum,
                objective.clipFlags(),
                objective.actedOn(),
                objective.metrics());
    }
}
