package dev.millrace.generator.environment;

import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.VerifiedReward;

/** The reward that the environment itself verified. */
public record OwnVerdict() implements RewardFunction {

    @Override
    public VerifiedReward reward(FinishedResponse response) {
        return response.verified();
    }
}
