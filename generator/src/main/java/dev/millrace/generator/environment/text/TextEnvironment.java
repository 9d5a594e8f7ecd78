package dev.millrace.generator.environment.text;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.api.tokenizer.Tokenizer;
import java.util.List;
import java.util.Map;

/**
 * One turn of text, which ends with a stop token, when its text has a stop text, or at the token limit. It finds nothing right or wrong: that is
 * what {@code reward} is for. The state is the row of data without its prompt, a JSON object.
 *
 * @param stopTokens that end a response
 * @param stopTexts that end it, wherever tokens begin and end
 * @param tokenizer of the response
 */
record TextEnvironment(List<Long> stopTokens, List<String> stopTexts, Tokenizer tokenizer) implements Environment {
    /** Tokens that one character may be made of, as bytes. */
    private static final int TOKENS_OF_A_CHARACTER = 4;

    @Override
    public String name() {
        return "text";
    }

    @Override
    public int endToken() {
        return stopTokens.size() == 1 ? Math.toIntExact(stopTokens.get(0)) : -1; // of several, the episode knows
    }

    @Override
    public Episode begin(String state) {
        RowState.parse(state);
        int longest = stopTexts.stream().mapToInt(String::length).max().orElse(0);
        return new Turn(
                stopTokens.stream().mapToInt(Math::toIntExact).toArray(),
                stopTexts,
                longest * TOKENS_OF_A_CHARACTER + 2, // the first decoded token may lose a space that it begins with
                tokenizer);
    }

    /** @param looksBack tokens in which a stop text that the newest one completes must lie */
    private record Turn(int[] stops, List<String> stopTexts, int looksBack, Tokenizer tokenizer) implements Episode {

        @Override
        public StepResult afterToken(Transcript response) {
            int newest = response.token(response.length() - 1);
            for (int stop : stops) {
                if (newest == stop) {
                    return StepResult.END;
                }
            }
            return stopTexts.isEmpty() || !hasStopText(response) ? StepResult.GO_ON : StepResult.END;
        }

        private boolean hasStopText(Transcript response) {
            int from = Math.max(0, response.length() - looksBack);
            int[] tail = new int[response.length() - from];
            for (int i = 0; i < tail.length; i++) {
                tail[i] = response.token(from + i);
            }
            String text = tokenizer.text(tail);
            return stopTexts.stream().anyMatch(text::contains);
        }

        @Override
        public VerifiedReward verify(Transcript response) {
            return new VerifiedReward(0, Map.of());
        }
    }
}
