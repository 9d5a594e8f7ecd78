package dev.millrace.api.environment;

import dev.millrace.api.tokenizer.Tokenizer;
import java.util.Arrays;
import java.util.List;

/**
 * A finished response for a reward function.
 *
 * @param promptTokens token ids of the prompt; read-only
 * @param environmentState of the request, in the environment's own notation; with the expected answer
 * @param response the tokens; valid during the call
 * @param verified the environment's own reward
 * @param tokenizer of all these tokens
 * @param stopTexts stop texts; the first to appear ended the response and is not part of its text
 * @param rolloutId of the rollout; empty if it has none yet
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

    /** The response as text, up to the stop text that ended it. */
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
