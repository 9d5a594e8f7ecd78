package org.example.lab;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import java.util.Map;

/** One turn; a prompt's state is the right answer, and the reward is the fraction of its letters that are right. */
public record Spelling() implements Environment {

    @Override
    public String name() {
        return "spelling";
    }

    @Override
    public int endToken() {
        return -1; // a response is over when it is as long as the answer
    }

    @Override
    public Episode begin(String state) {
        int[] answer = new Letters().encode(state); // refuses a state that is no answer
        return new Episode() {
            @Override
            public StepResult afterToken(Transcript response) {
                return response.length() < answer.length ? StepResult.GO_ON : StepResult.END;
            }

            @Override
            public VerifiedReward verify(Transcript response) {
                int right = 0;
                for (int i = 0; i < Math.min(answer.length, response.length()); i++) {
                    right += response.token(i) == answer[i] ? 1 : 0;
                }
                return new VerifiedReward((double) right / answer.length, Map.of("right", (double) right));
            }
        };
    }
}
