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
        return new Turn(
                new StopRule(stopTokens.stream().mapToInt(Math::toIntExact).toArray(), stopTexts, tokenizer));
    }

    private record Turn(StopRule stop) implements Episode {

        @Override
        public StepResult afterToken(Transcript response) {
            return stop.endsAt(response) ? StepResult.END : StepResult.GO_ON;
        }

        @Override
        public VerifiedReward verify(Transcript response) {
            return new VerifiedReward(0, Map.of());
        }
    }
}
