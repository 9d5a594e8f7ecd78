package dev.millrace.corrections.objective;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A loss, its derivative, and what happened on the way. The arrays and the map belong to the caller.
 *
 * @param loss the aggregated loss; minimise it
 * @param gradient dLoss/d log π of each packed token; 0 at context tokens
 * @param clipFlags per packed token, {@link #CLIPPED}, {@link #LOWER_CLIPPED}, both or neither; 0 at context tokens
 * @param actedOn on how much the objective did more than take its ratio
 * @param metrics fractions and means over trained tokens, under verl's names; which ones, the objective says:
 *     {@link #APPROX_KL}, {@link #CLIPPED_FRACTION}, {@link #LOWER_CLIPPED_FRACTION}. 0 if no token is trained
 */
public record ObjectiveResult(
        double loss, float[] gradient, byte[] clipFlags, ActedOn actedOn, Map<String, Double> metrics) {
    /** Flag of a token that counts in {@link #CLIPPED_FRACTION}. */
    public static final byte CLIPPED = 1;
    /** Flag of a token that counts in {@link #LOWER_CLIPPED_FRACTION}. */
    public static final byte LOWER_CLIPPED = 2;
    /** Mean of proximal minus current log-prob, on the same bounded ratios as the loss. */
    public static final String APPROX_KL = "actor/ppo_kl";
    /** Fraction of trained tokens whose loss was clipped. */
    public static final String CLIPPED_FRACTION = "actor/pg_clipfrac";
    /** Fraction of trained tokens at the bound for negative advantages, or at the bound of a truncated ratio. */
    public static final String LOWER_CLIPPED_FRACTION = "actor/pg_clipfrac_lower";

    public ObjectiveResult {
        metrics = Collections.unmodifiableMap(new LinkedHashMap<>(metrics));
    }

    public ObjectiveResult withLoss(double other) {
        return new ObjectiveResult(other, gradient, clipFlags, actedOn, metrics);
    }

    public ObjectiveResult withMetrics(Map<String, Double> others) {
        return new ObjectiveResult(loss, gradient, clipFlags, actedOn, others);
    }
}
