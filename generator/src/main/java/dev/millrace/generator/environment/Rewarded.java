package dev.millrace.generator.environment;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.EpisodeStart;
import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.api.tokenizer.Tokenizer;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

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
    public void requirePlayable(String state) {
        environment.requirePlayable(state);
        function.requireJudgeable(state);
    }

    @Override
    public Episode begin(String state) {
        return begin(new EpisodeStart("", promptTokens, state));
    }

    @Override
    public Episode begin(EpisodeStart start) {
        Episode episode = environment.begin(start);
        function.requireJudgeable(start.state());
        return new Judged(episode, start);
    }

    private final class Judged implements Episode {
        private final Episode episode;
        private final EpisodeStart start;

        Judged(Episode episode, EpisodeStart start) {
            this.episode = episode;
            this.start = start;
        }

        @Override
        public boolean opens() {
            return episode.opens();
        }

        @Override
        public StepResult afterToken(Transcript response) {
            return episode.afterToken(response);
        }

        @Override
        public VerifiedReward verify(Transcript response) {
            return function.reward(finished(response, episode.verify(response)));
        }

        @Override
        public Optional<CompletionStage<VerifiedReward>> verifyLater(Transcript response) {
            Optional<CompletionStage<VerifiedReward>> verified = episode.verifyLater(response);
            if (verified.isPresent()) {
                return Optional.of(verified.get().thenCompose(own -> rewarded(response, own)));
            }
            return function.takesTime() ? Optional.of(rewarded(response, episode.verify(response))) : Optional.empty();
        }

        private CompletionStage<VerifiedReward> rewarded(Transcript response, VerifiedReward own) {
            FinishedResponse finished = finished(response, own);
            return function.takesTime()
                    ? function.rewardLater(finished)
                    : CompletableFuture.completedFuture(function.reward(finished));
        }

        private FinishedResponse finished(Transcript response, VerifiedReward own) {
            return new FinishedResponse(
                    start.promptTokens(),
                    start.state(),
                    response,
                    own,
                    tokenizer,
                    environment.stopTexts(),
                    start.rolloutId());
        }

        @Override
        public void abandon() {
            episode.abandon();
        }
    }
}
