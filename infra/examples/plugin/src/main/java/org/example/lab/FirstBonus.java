package org.example.lab;

import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.api.plugin.Meaning;
import java.util.HashMap;
import java.util.Map;

/** What the environment says, and something more where the first letter is right. */
public record FirstBonus(@Meaning("added where the first letter is right, at least 0") double bonus)
        implements RewardFunction {

    public FirstBonus {
        if (!(bonus >= 0)) {
            throw new IllegalArgumentException("bonus must be at least 0: " + bonus);
        }
    }

    @Override
    public VerifiedReward reward(FinishedResponse response) {
        int wanted = new Letters().encode(response.environmentState())[0];
        double earned = response.response().token(0) == wanted ? bonus : 0;
        VerifiedReward verified = response.verified();
        Map<String, Double> components = new HashMap<>(verified.components());
        components.put("first_bonus", earned);
        return new VerifiedReward(
                verified.reward() + earned, components, verified.turnRewards(), verified.tokenRewards());
    }
}
