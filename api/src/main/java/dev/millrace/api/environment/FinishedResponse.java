package dev.millrace.api.environment;

/**
 * A response that is over, for a reward function to judge.
 *
 * @param promptTokens token ids of the prompt; not to be written
 * @param environmentState of the request, in the environment's own notation; it holds what is known of the right answer
 * @param response the tokens; valid during the call
 * @param verified what the environment itself says it is worth
 */
public record FinishedResponse(
        int[] promptTokens, String environmentState, Transcript response, VerifiedReward verified) {}
