package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What an environment says at the beginning, after a turn, or of its state.
 *
 * @param text for the policy to read, before it is framed; empty for nothing
 * @param tokens for the policy to read as they are, in place of a text; null where there are none
 * @param reward of this turn; of a state, of the episode so far
 * @param hasReward whether it said one
 * @param components of the reward, by name
 * @param done whether the episode is over
 */
record EpisodeAnswer(
        String text,
        int @Nullable [] tokens,
        double reward,
        boolean hasReward,
        Map<String, Double> components,
        boolean done) {
    private static final Set<String> KNOWN =
            Set.of("id", "rollout_id", "step", "text", "tokens", "reward", "reward_components", "done", "error");

    /**
     * Reads it.
     *
     * @param step how many turns the environment has taken by now, which it must say too
     * @throws PartnerException saying what is missing or wrong
     */
    static EpisodeAnswer read(ObjectNode answer, int step, String who) {
        PartnerJson.requireKnown(answer, KNOWN, who);
        JsonNode counted = answer.path("step");
        if (!counted.isIntegralNumber()) {
            throw new PartnerException(
                    who + " must say in \"step\" how many turns the episode has, so that none is taken" + " twice: "
                            + (counted.isMissingNode() ? "there is none" : counted));
        }
        if (counted.asLong() != step) {
            throw new PartnerException(who + " has taken " + counted + " turns of an episode that has " + step
                    + "; a turn that is asked again must be answered as before, and taken once");
        }
        JsonNode text = answer.path("text");
        JsonNode tokens = answer.path("tokens");
        boolean hasText = PartnerJson.isThere(text);
        boolean hasTokens = PartnerJson.isThere(tokens);
        if (hasText && !text.isTextual()) {
            throw new PartnerException(who + " answered with no text as text: " + text.getNodeType());
        }
        if (hasText && hasTokens) {
            throw new PartnerException(who + " answered with text and tokens; give one of them");
        }
        JsonNode done = answer.path("done");
        if (PartnerJson.isThere(done) && !done.isBoolean()) {
            throw new PartnerException(who + " must answer with true or false as done: " + done);
        }
        JsonNode reward = answer.path("reward");
        boolean hasReward = PartnerJson.isThere(reward);
        return new EpisodeAnswer(
                hasText ? text.asText() : "",
                hasTokens ? tokens(tokens, who) : null,
                hasReward ? PartnerJson.number(reward, "reward", who) : 0,
                hasReward,
                PartnerJson.numbersByName(answer.path("reward_components"), "reward_components", who),
                done.asBoolean(false));
    }

    private static int[] tokens(JsonNode value, String who) {
        if (!value.isArray()) {
            throw new PartnerException(who + " must answer with a list of token ids as tokens: " + value.getNodeType());
        }
        int[] tokens = new int[value.size()];
        for (int t = 0; t < tokens.length; t++) {
            if (!value.get(t).isInt()) {
                throw new PartnerException(who + " answered with no token id as tokens[" + t + "]: " + value.get(t));
            }
            tokens[t] = value.get(t).asInt();
        }
        return tokens;
    }
}
