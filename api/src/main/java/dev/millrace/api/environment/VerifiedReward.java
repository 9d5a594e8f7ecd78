package dev.millrace.api.environment;

import java.util.Map;

/**
 * The verified reward of a finished response.
 *
 * @param reward finite; most environments keep to 0 to 1
 * @param components what it is made of, by name
 */
public record VerifiedReward(double reward, Map<String, Double> components) {

    public VerifiedReward {
        components = Map.copyOf(components);
        if (!Double.isFinite(reward)) {
            throw new IllegalArgumentException("a reward must be finite: " + reward + " made of " + components);
        }
    }
}
