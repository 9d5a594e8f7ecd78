package dev.millrace.api.environment;

import dev.millrace.api.tokenizer.Tokenizer;
import java.util.Arrays;

/**
 * A response that is over, for a reward function to judge.
 *
 * @param promptTokens token ids of the prompt; not to be written
 * @param environmentState of the request, in the environment's own notation; it holds what is known of the right answer
 * @param response the tokens; valid during the call
 * @param verified what the environment itself says it is worth
 * @param tokenizer the vocabulary of all these tokens
 */
public record FinishedResponse(
        int[] promptTokens,
        String environmentState,
        Transcript response,
        VerifiedReward verified,
        Tokenizer tokenizer) {

    /** What the policy wrote, as text. */
    public String text() {
        int[] own = new int[response.length()];
        int count = 0;
        for (int i = 0; i < own.length; i++) {
            if (response.byPolicy(i)) {
                own[count++] = response.token(i);
            }
        }
        return tokenizer.text(Arrays.copyOf(own, count));
    }
}
