package dev.millrace.generator.environment;

import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.VerifiedReward;

/**
 * The reward that the environment itself verified.
 *
 * @param credit record the environment's rewards per turn and token too; 4 bytes each in rollout and trajectory
 */
public record OwnVerdict(boolean credit) implements RewardFunction {

    public static OwnVerdict defaults() {
        return new OwnVerdict(false);
    }

    @Override
    public VerifiedReward reward(FinishedResponse response) {
        VerifiedReward verified = response.verified();
        return credit ? verified : new VerifiedReward(verified.reward(), verified.components());
    }
}
