package dev.millrace.corrections.staleness;

import java.util.Arrays;

/**
 * Weights that fall with staleness {@code s}: {@code 2^(-s / halfLife)} ({@link Exponential}) or {@code (1 +
 * s)^(-power)} ({@link Power}); 1 for on-policy tokens.
 *
 * <p>A heuristic damping for data whose log-ratios are not to be trusted, not an importance weight: it says nothing
 * of how far the policy moved, only of how many updates it had. Multiply it onto the weights of a correction, or use
 * it alone. Unit: token, by the version that sampled it. Immutable and thread-safe.
 */
public sealed interface StalenessWeights {

    /**
     * Halves every {@code halfLifeVersions} versions.
     *
     * @param halfLifeVersions positive and finite
     */
    record Exponential(double halfLifeVersions) implements StalenessWeights {
        public Exponential {
            if (!(halfLifeVersions > 0.0 && halfLifeVersions < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException(
                        "half-life must be positive and finite: halfLifeVersions=" + halfLifeVersions);
            }
        }

        @Override
        public double weight(long stalenessVersions) {
            return Math.pow(2.0, -stalenessVersions / halfLifeVersions);
        }
    }

    /**
     * Falls as a power of the staleness.
     *
     * @param power positive and finite
     */
    record Power(double power) implements StalenessWeights {
        public Power {
            if (!(power > 0.0 && power < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("power must be positive and finite: power=" + power);
            }
        }

        @Override
        public double weight(long stalenessVersions) {
            return Math.pow(1.0 + stalenessVersions, -power);
        }
    }

    /** The weight of a token {@code stalenessVersions} versions old, in [0, 1]; not negative. */
    double weight(long stalenessVersions);

    /**
     * Overwrites {@code weights}, one per packed token: the weight if trained, 0 if context.
     *
     * @throws IllegalArgumentException if there is not one slot per token, or a span is newer than
     *     {@code currentVersion}
     */
    default void compute(BatchVersions versions, long currentVersion, float[] weights) {
        var batch = versions.batch();
        batch.requireLength("weights", weights.length);
        Arrays.fill(weights, 0f);
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (VersionSpan span : versions.spans(s)) {
                float weight = (float) weight(BatchVersions.staleness(s, span, currentVersion));
                for (int t = batch.start(s) + span.start(); t < batch.start(s) + span.end(); t++) {
                    if (batch.isTrained(t)) {
                        weights[t] = weight;
                    }
                }
            }
        }
    }
}
