package dev.millrace.api.environment;

import dev.millrace.api.tokenizer.Tokenizer;
import java.util.Arrays;
import java.util.List;

/**
 * A response that is over, for a reward function to judge.
 *
 * @param promptTokens token ids of the prompt; not to be written
 * @param environmentState of the request, in the environment's own notation; it holds what is known of the right answer
 * @param response the tokens; valid during the call
 * @param verified what the environment itself says it is worth
 * @param tokenizer the vocabulary of all these tokens
 * @param stopTexts stop texts; the first to appear ended the response and is not part of its text
 * @param rolloutId of the rollout; empty where it has none yet
 */
public record FinishedResponse(
        int[] promptTokens,
        String environmentState,
        Transcript response,
        VerifiedReward verified,
        Tokenizer tokenizer,
        List<String> stopTexts,
        String rolloutId) {

    public FinishedResponse {
        stopTexts = List.copyOf(stopTexts);
    }

    /** A response of no rollout by name. */
    public FinishedResponse(
            int[] promptTokens,
            String environmentState,
            Transcript response,
            VerifiedReward verified,
            Tokenizer tokenizer,
            List<String> stopTexts) {
        this(promptTokens, environmentState, response, verified, tokenizer, stopTexts, "");
    }

    /** A response that no text ended. */
    public FinishedResponse(
            int[] promptTokens,
            String environmentState,
            Transcript response,
            VerifiedReward verified,
            Tokenizer tokenizer) {
        this(promptTokens, environmentState, response, verified, tokenizer, List.of());
    }

    /** What the policy wrote, as text, up to the stop text that ended it. */
    public String text() {
        int[] own = new int[response.length()];
        int count = 0;
        for (int i = 0; i < own.length; i++) {
            if (response.byPolicy(i)) {
                own[count++] = response.token(i);
            }
        }
        String text = tokenizer.text(Arrays.copyOf(own, count));
        int end = text.length();
        for (String stop : stopTexts) {
            int found = text.indexOf(stop);
            end = found < 0 ? end : Math.min(end, found);
        }
        return text.substring(0, end);
    }
}
