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
        AnswerJson.requireKnown(answer, KNOWN, who);
        return new VerifiedReward(
                AnswerJson.number(answer.path("reward"), "reward", who),
                AnswerJson.numbersByName(answer.path("reward_components"), "reward_components", who),
                AnswerJson.numbers(answer.path("turn_rewards"), "turn_rewards", who),
                AnswerJson.numbers(answer.path("token_rewards"), "token_rewards", who));
    }
}
