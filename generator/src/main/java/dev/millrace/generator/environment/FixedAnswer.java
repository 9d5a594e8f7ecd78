package dev.millrace.generator.environment;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * One turn with one right answer of known length: {@code reward = right positions / length of the answer}.
 *
 * <p>The response ends at the answer's length. Positions missing at the token limit count as wrong. Each right token
 * gets its share of the reward. The state is the answer in digits, such as {@code 24680}.
 */
public record FixedAnswer() implements Environment {

    @Override
    public String name() {
        return "fixed-answer";
    }

    @Override
    public int endToken() {
        return -1; // the length is part of the question
    }

    @Override
    public Episode begin(String state) {
        if (state.isEmpty()) {
            throw new IllegalArgumentException("the state must be the right answer in digits: it is empty");
        }
        int[] answer = new int[state.length()];
        for (int i = 0; i < answer.length; i++) {
            char c = state.charAt(i);
            if (c < '0' || c > '9') {
                throw new IllegalArgumentException(
                        "the state must be the right answer in digits: '" + state + "' at position " + i);
            }
            answer[i] = Symbols.digit(c - '0');
        }
        return new Comparison(answer);
    }

    static String state(int[] digits) {
        StringBuilder text = new StringBuilder(digits.length);
        for (int digit : digits) {
            text.append((char) ('0' + digit));
        }
        return text.toString();
    }

    private record Comparison(int[] answer) implements Episode {

        @Override
        public StepResult afterToken(Transcript response) {
            return response.length() < answer.length ? StepResult.GO_ON : StepResult.END;
        }

        @Override
        public VerifiedReward verify(Transcript response) {
            int right = 0;
            List<Double> perToken = new ArrayList<>(response.length());
            for (int i = 0; i < response.length(); i++) {
                boolean isRight = i < answer.length && response.token(i) == answer[i];
                right += isRight ? 1 : 0;
                perToken.add(isRight ? 1.0 / answer.length : 0.0);
            }
            return new VerifiedReward(
                    (double) right / answer.length,
                    Map.of("right", (double) right, "wrong", (double) (answer.length - right)),
                    List.of(),
                    perToken);
        }
    }
}
