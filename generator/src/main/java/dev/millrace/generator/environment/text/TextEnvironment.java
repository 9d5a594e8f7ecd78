package dev.millrace.generator.environment.text;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import java.util.List;
import java.util.Map;

/**
 * One turn of text, which ends with a stop token or at the token limit. It finds nothing right or wrong: that is what {@code reward} is for.
 * The state is the row of data without its prompt, a JSON object.
 *
 * @param stopTokens that end a response
 */
record TextEnvironment(List<Long> stopTokens) implements Environment {

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
        return new Turn(stopTokens.stream().mapToInt(Math::toIntExact).toArray());
    }

    private record Turn(int[] stops) implements Episode {

        @Override
        public StepResult afterToken(Transcript response) {
            int newest = response.token(response.length() - 1);
            for (int stop : stops) {
                if (newest == stop) {
                    return StepResult.END;
                }
            }
            return StepResult.GO_ON;
        }

        @Override
        public VerifiedReward verify(Transcript response) {
            return new VerifiedReward(0, Map.of());
        }
    }
}
