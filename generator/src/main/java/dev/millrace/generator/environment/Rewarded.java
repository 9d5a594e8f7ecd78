package dev.millrace.generator.environment;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.api.tokenizer.Tokenizer;
import java.util.List;

/**
 * An environment whose responses to one prompt are rewarded by somebody else.
 *
 * @param promptTokens of the prompt that it plays
 * @param tokenizer the vocabulary of these and of the response
 */
record Rewarded(Environment environment, RewardFunction function, int[] promptTokens, Tokenizer tokenizer)
        implements Environment {

    @Override
    public String name() {
        return environment.name();
    }

    @Override
    public int endToken() {
        return environment.endToken();
    }

    @Override
    public List<String> stopTexts() {
        return environment.stopTexts();
    }

    @Override
    public Episode begin(String state) {
        Episode episode = environment.begin(state);
        function.requireJudgeable(state);
        return new Episode() {
            @Override
            public StepResult afterToken(Transcript response) {
                return episode.afterToken(response);
            }

            @Override
            public VerifiedReward verify(Transcript response) {
                return function.reward(new FinishedResponse(
                        promptTokens, state, response, episode.verify(response), tokenizer, environment.stopTexts()));
            }
        };
    }
}
