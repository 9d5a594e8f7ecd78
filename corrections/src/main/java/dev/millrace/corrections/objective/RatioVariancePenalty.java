package dev.millrace.corrections.objective;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * The penalised surrogate {@code rho A - lambda (rho - 1)^2} and its gradient {@code rho (A - 2 lambda (rho - 1))}
 * with respect to the token's log-prob.
 *
 * <p>Where clipping cuts the gradient at one range for all tokens, here it falls linearly and turns at
 * {@code rho = 1 + A / (2 lambda)}: a range that adapts to each token's advantage, and to the batch through lambda.
 * Beyond it the gradient points back. A token of large advantage may move far, which is the point of the method.
 *
 * <p>Unit: token. Ratios are bounded to {@code e^±20}. Immutable and thread-safe.
 *
 * @param multiplier lambda, positive and finite
 */
public record RatioVariancePenalty(double multiplier) {
    public RatioVariancePenalty {
        if (!(multiplier > 0.0 && multiplier < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("multiplier must be positive and finite: multiplier=" + multiplier);
        }
    }

    /**
     * The ratio at which the gradient of a token with this advantage turns, {@code max(0, 1 + A / (2 lambda))}: the
     * upper end of its range for a positive advantage, the lower end for a negative one.
     */
    public double turningRatio(double advantage) {
        return Math.max(0.0, 1.0 + advantage / (2.0 * multiplier));
    }

    /** The objective's value at one token, to be maximised. */
    public double value(double logRatio, double advantage) {
        double deviation = Math.expm1(LogRatio.bounded(logRatio));
        return (1.0 + deviation) * advantage - multiplier * deviation * deviation;
    }

    /** The derivative of {@link #value} with respect to the target's log-prob; 0 where the ratio is bounded. */
    public double gradient(double logRatio, double advantage) {
        if (Math.abs(logRatio) >= LogRatio.BOUND) {
            return 0.0;
        }
        double deviation = Math.expm1(logRatio);
        return (1.0 + deviation) * (advantage - 2.0 * multiplier * deviation);
    }

    /**
     * Overwrites {@code gradients} with the derivative per packed token, 0 at context.
     *
     * @param ratio the policy being differentiated over the sampler
     * @param advantages one per packed token
     * @return the mean of {@link #value} over trained tokens; 0 without any
     * @throws IllegalArgumentException if an array has another length than the batch or an advantage is not finite
     * @throws NonFiniteLogProbException naming sequence and token; {@code gradients} is then overwritten in part
     */
    public double compute(TokenBatch batch, LogRatio ratio, float[] advantages, double[] gradients) {
        ratio.requireFits(batch);
        batch.requireFinite("advantages", advantages);
        batch.requireLength("gradients", gradients.length);
        double sum = 0.0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t++) {
                gradients[t] = 0.0;
                if (batch.isTrained(t)) {
                    double logRatio = ratio.finiteAt(batch, s, t);
                    sum += value(logRatio, advantages[t]);
                    gradients[t] = gradient(logRatio, advantages[t]);
                }
            }
        }
        return batch.trainedTokens() == 0 ? 0.0 : sum / batch.trainedTokens();
    }
}
