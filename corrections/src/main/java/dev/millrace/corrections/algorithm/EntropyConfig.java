package dev.millrace.corrections.algorithm;

import java.util.Locale;

/**
 * The entropy bonus: {@code loss - β · mean entropy}, aggregated as the policy loss is.
 *
 * @param bonus largest β; 0 for no bonus
 * @param rule rule for β
 */
public record EntropyConfig(double bonus, Rule rule) {

    /** What the bonus depends on. */
    public enum Rule {
        /** β is the bonus. */
        CONSTANT,
        /**
         * β = bonus · (1 − mean reward of the batch), kept in [0, bonus]: exploring ends as the task is solved. For rewards
         * in [0, 1].
         */
        REWARD_GAP
    }

    public EntropyConfig {
        if (!(bonus >= 0 && bonus < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("bonus must be at least 0 and finite (rule "
                    + rule.name().toLowerCase(Locale.ROOT) + "): " + bonus);
        }
    }

    public static EntropyConfig defaults() {
        return new EntropyConfig(0.03, Rule.REWARD_GAP);
    }

    /** β for a batch; a function of the batch alone, so that a repeated step is the same step. */
    public double coefficient(double meanReward) {
        return switch (rule) {
            case CONSTANT -> bonus;
            case REWARD_GAP -> bonus * Math.min(1, Math.max(0, 1 - meanReward));
        };
    }
}
