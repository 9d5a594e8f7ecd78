package dev.millrace.corrections.objective;

import dev.millrace.corrections.TokenBatch;
import java.util.OptionalDouble;

/**
 * The loss of a value function, {@code Σ_s c_s Σ_t ½ max((V − R)², (clip(V) − R)²)} over trained tokens.
 * {@code clip(V)} lies within {@code V_old ± clip}; c are the aggregation's coefficients.
 *
 * <p>Source: Schulman et al., OpenAI Baselines {@code ppo2}; verl's {@code compute_value_loss}.
 *
 * @param loss the sum
 * @param clippedFraction share of trained tokens whose clipped error is the larger one; they have no gradient
 * @param gradient by each value, one per packed token; 0 at context
 */
public record ValueLoss(double loss, double clippedFraction, float[] gradient) {

    /**
     * The loss of one update.
     *
     * @param values of the weights before the update
     * @param old of the weights at the start of the step
     * @param clip 0 for no bound
     */
    public static ValueLoss of(
            TokenBatch layout, float[] values, float[] old, float[] returns, double[] aggregation, double clip) {
        layout.requireFinite("values", values);
        layout.requireFinite("returns", returns);
        if (clip > 0) {
            layout.requireFinite("old values", old);
        }
        float[] gradient = new float[layout.tokenCount()];
        double loss = 0;
        long clipped = 0;
        for (int s = 0; s < layout.sequenceCount(); s++) {
            double sum = 0;
            for (int t = layout.start(s); t < layout.end(s); t++) {
                if (layout.isTrained(t)) {
                    double error = (double) values[t] - returns[t];
                    double bounded = clip == 0
                            ? error
                            : Math.max(old[t] - clip, Math.min(old[t] + clip, values[t])) - returns[t];
                    boolean isClipped = bounded * bounded > error * error;
                    double larger = isClipped ? bounded : error;
                    sum += larger * larger / 2;
                    clipped += isClipped ? 1 : 0;
                    gradient[t] = isClipped ? 0f : (float) (aggregation[s] * error);
                }
            }
            loss += aggregation[s] * sum;
        }
        return new ValueLoss(loss, (double) clipped / Math.max(1, layout.trainedTokens()), gradient);
    }

    /**
     * How much of the returns' variance over trained tokens the values explain, {@code 1 − Var(R − V) / Var(R)}: 1 at best,
     * 0 of constant values, below 0 of worse ones. Empty where all returns are the same.
     */
    public static OptionalDouble explainedVariance(TokenBatch layout, float[] values, float[] returns) {
        double[] returned = new double[layout.trainedTokens()];
        double[] missed = new double[returned.length];
        int i = 0;
        for (int s = 0; s < layout.sequenceCount(); s++) {
            for (int t = layout.start(s); t < layout.end(s); t++) {
                if (layout.isTrained(t)) {
                    returned[i] = returns[t];
                    missed[i++] = (double) returns[t] - values[t];
                }
            }
        }
        double all = squaredDeviations(returned);
        return all > 0 ? OptionalDouble.of(1 - squaredDeviations(missed) / all) : OptionalDouble.empty();
    }

    private static double squaredDeviations(double[] numbers) {
        double mean = 0;
        for (double number : numbers) {
            mean += number / numbers.length;
        }
        double sum = 0;
        for (double number : numbers) {
            sum += (number - mean) * (number - mean);
        }
        return sum;
    }
}
