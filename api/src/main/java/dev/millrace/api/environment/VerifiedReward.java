package dev.millrace.api.environment;

import java.util.List;
import java.util.Map;

/**
 * The verified reward of a finished response, optionally per turn or token.
 *
 * <p>Rewards of turns and tokens add to the response's; only an advantage with {@code credit: turn} or {@code token} reads them.
 *
 * @param reward finite; most environments keep to 0 to 1
 * @param components parts of the reward, by name
 * @param turnRewards finite, one per turn of the policy in order; a turn is a run of sampled tokens; empty without turn
 * rewards
 * @param tokenRewards finite, one per token of the response, 0 for none; empty without token rewards
 */
public record VerifiedReward(
        double reward, Map<String, Double> components, List<Double> turnRewards, List<Double> tokenRewards) {

    public VerifiedReward {
        components = Map.copyOf(components);
        turnRewards = List.copyOf(turnRewards);
        tokenRewards = List.copyOf(tokenRewards);
        if (!Double.isFinite(reward)) {
            throw new IllegalArgumentException("a reward must be finite: " + reward + " made of " + components);
        }
        requireFinite("turn", turnRewards);
        requireFinite("token", tokenRewards);
    }

    /** A reward of the whole response. */
    public VerifiedReward(double reward, Map<String, Double> components) {
        this(reward, components, List.of(), List.of());
    }

    /** The same with a reward for each turn of the policy. */
    public VerifiedReward withTurnRewards(List<Double> perTurn) {
        return new VerifiedReward(reward, components, perTurn, tokenRewards);
    }

    /** The same with a reward for each token of the response. */
    public VerifiedReward withTokenRewards(List<Double> perToken) {
        return new VerifiedReward(reward, components, turnRewards, perToken);
    }

    private static void requireFinite(String of, List<Double> rewards) {
        for (int i = 0; i < rewards.size(); i++) {
            if (!Float.isFinite(rewards.get(i).floatValue())) { // as recorded
                throw new IllegalArgumentException(
                        "the reward of a " + of + " must be finite: " + rewards.get(i) + " at " + of + " " + i);
            }
        }
    }
}
