package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.environment.VerifiedReward;
import java.util.Set;

/** What a verifier says: {@code {"reward": 1, "reward_components": {...}}}. */
final class VerdictAnswer {
    private static final Set<String> KNOWN =
            Set.of("id", "rollout_id", "reward", "reward_components", "turn_rewards", "token_rewards", "error");

    private VerdictAnswer() {}

    /** @throws PartnerException saying what is missing or wrong */
    static VerifiedReward read(ObjectNode answer, String who) {
        PartnerJson.requireKnown(answer, KNOWN, who);
        return new VerifiedReward(
                PartnerJson.number(answer.path("reward"), "reward", who),
                PartnerJson.numbersByName(answer.path("reward_components"), "reward_components", who),
                PartnerJson.numbers(answer.path("turn_rewards"), "turn_rewards", who),
                PartnerJson.numbers(answer.path("token_rewards"), "token_rewards", who));
    }
}
