package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.generator.environment.remote.RemotePlace.Limits;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;

/**
 * What a verifier of the user's own says, in any language: a server, or a command.
 *
 * <p>Each response is one question, with an id of the rollout and its tokens. While it is asked, sampling continues.
 *
 * @param url server for POST requests, {@code http} or {@code https}
 * @param command shell command that reads a question per line and writes an answer per line; replaces {@code url}
 * @param tokenVariable environment variable with the bearer token for {@code url}; empty for none
 * @param timeoutMs timeout of an answer, 1 to 3600000
 * @param attempts tries per question, 1 to 20, after a lost or late answer or a server error
 * @param patienceMs longest wait for an unreachable server before rollouts fail, 0 to 3600000
 * @param concurrency concurrent questions, or processes of a command, 1 to 4096
 * @param answerBytes longest answer, 64 to 67108864
 */
public record RemoteReward(
        String url,
        String command,
        String tokenVariable,
        int timeoutMs,
        int attempts,
        int patienceMs,
        int concurrency,
        int answerBytes)
        implements RewardFunction {

    public RemoteReward {
        Limits limits = new Limits(timeoutMs, attempts, patienceMs, concurrency, answerBytes);
        new RemotePlace(url, command, tokenVariable, limits).check("http", "https");
    }

    /** Nobody yet; 30 s, three times, eight at once. */
    public static RemoteReward defaults() {
        return new RemoteReward("", "", "", 30_000, 3, 60_000, 8, 1 << 20);
    }

    private RemotePlace place() {
        return new RemotePlace(
                url, command, tokenVariable, new Limits(timeoutMs, attempts, patienceMs, concurrency, answerBytes));
    }

    /**
     * Requires an address or a command; called by a process that rewards, before it starts.
     *
     * @throws IllegalArgumentException with the way out
     */
    public void requireGiven() {
        place().requireGiven("reward");
    }

    @Override
    public void requireJudgeable(String environmentState) {}

    @Override
    public boolean takesTime() {
        return true;
    }

    @Override
    public VerifiedReward reward(FinishedResponse response) {
        try {
            return rewardLater(response).toCompletableFuture().join();
        } catch (CompletionException e) {
            throw e.getCause() instanceof RuntimeException failure ? failure : e;
        }
    }

    @Override
    public CompletionStage<VerifiedReward> rewardLater(FinishedResponse response) {
        return ask(VerdictQuestion.of(response));
    }

    /** The verdict on a response that another program describes. */
    public CompletionStage<VerifiedReward> ask(VerdictQuestion question) {
        RemotePlace place = place();
        place.requireGiven("reward");
        ObjectNode body = question.body();
        return Partners.of(place)
                .ask(Question.single(body.path("id").asText(), body))
                .thenApply(answer -> VerdictAnswer.read(answer, place.shown()));
    }

    /** What a verifier says: {@code {"reward": 1, "reward_components": {...}}}. */
    static final class VerdictAnswer {
        private static final Set<String> KNOWN =
                Set.of("id", "rollout_id", "reward", "reward_components", "turn_rewards", "token_rewards", "error");

        private VerdictAnswer() {}

        /** @throws PartnerException saying what is missing or wrong */
        static VerifiedReward read(ObjectNode answer, String who) {
            PartnerJson.requireKnown(answer, KNOWN, who);
            return new VerifiedReward(
                    PartnerJson.number(answer.path("reward"), "reward", who),
                    PartnerJson.numbersByName(answer.path("reward_components"), "reward_components", who),
                    PartnerJson.numbers(answer.path("turn_rewards"), "turn_rewards", who),
                    PartnerJson.numbers(answer.path("token_rewards"), "token_rewards", who));
        }
    }
}
