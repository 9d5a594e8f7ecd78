package dev.millrace.generator.environment;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.EpisodeStart;
import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Task;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.packed.PackedInts;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.UnaryOperator;

/** The environments a generator can serve, by name, and what rewards the responses. Immutable and thread-safe. */
public final class Environments {
    private final SortedMap<String, Environment> byName = new TreeMap<>();
    private final RewardFunction reward;
    private final Tokenizer tokenizer;

    /** @throws IllegalArgumentException if two have the same name */
    public Environments(Collection<? extends Environment> environments) {
        this(environments, OwnVerdict.defaults(), Symbols.tokenizer());
    }

    /**
     * @param tokenizer the vocabulary of all prompts and responses, for rewards that read text
     * @throws IllegalArgumentException if two have the same name
     */
    public Environments(Collection<? extends Environment> environments, RewardFunction reward, Tokenizer tokenizer) {
        this.reward = reward;
        this.tokenizer = tokenizer;
        for (Environment given : environments) {
            Environment environment = given.in(tokenizer);
            Environment other = byName.putIfAbsent(environment.name(), environment);
            if (other != null) {
                throw new IllegalArgumentException("two environments are named " + environment.name() + ": "
                        + other.getClass().getName() + " and "
                        + given.getClass().getName());
            }
        }
    }

    /**
     * Returns the environment of a task together with others.
     *
     * @param others may include the task's own
     * @throws IllegalArgumentException if two different ones have the same name
     */
    public static Environments of(Task task, List<Environment> others, RewardFunction reward) {
        List<Environment> all = new ArrayList<>(others);
        if (others.stream()
                .noneMatch(other -> other.name().equals(task.environment().name())
                        && other.getClass() == task.environment().getClass()
                        && (!(other instanceof Record) || other.equals(task.environment())))) {
            all.add(task.environment());
        }
        return new Environments(all, reward, task.tokenizer());
    }

    public static Environments builtIn() {
        return new Environments(List.of(new FixedAnswer(), new Guess()));
    }

    /** The same names under other environments. */
    public Environments each(UnaryOperator<Environment> other) {
        return new Environments(byName.values().stream().map(other).toList(), reward, tokenizer);
    }

    /** @throws IllegalArgumentException naming the nearest known one if there is none of that name */
    public Environment named(String name) {
        Environment environment = byName.get(name);
        if (environment == null) {
            throw new IllegalArgumentException("unknown environment: " + NearestName.sentence(name, byName.keySet())
                    + "; name a plug-in's environment in environments, or in its task");
        }
        return environment;
    }

    /**
     * Returns the environment of a request, with the reward of its responses.
     *
     * @throws IllegalArgumentException naming the nearest known one if there is none of the request's name
     */
    public Environment playing(PromptRequest request) {
        Environment environment = named(request.getEnvironment());
        return reward instanceof OwnVerdict own && own.credit()
                ? environment
                : new Rewarded(environment, reward, PackedInts.toArray(request.getPromptTokens()), tokenizer);
    }

    /**
     * An environment whose responses to one prompt are rewarded by somebody else.
     *
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
                return function.takesTime()
                        ? Optional.of(rewarded(response, episode.verify(response)))
                        : Optional.empty();
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
}
