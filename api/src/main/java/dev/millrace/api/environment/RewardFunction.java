package dev.millrace.api.environment;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * Rewards finished responses in the place of their environment; the door through which reward functions come. {@code reward: NAME}
 * chooses one for a run.
 *
 * <p>An implementation is a record of settings. Deterministic, as an {@link Episode} is: whoever holds a rollout and its request gets
 * the same reward again. Thread-safe; called on the thread that commits, so what takes its time says so with {@link #takesTime()}, and is
 * asked with {@link #rewardLater}; what needs minutes rather writes records on the topic {@code rewards}.
 *
 * <p>What it throws costs the rollout: it ends as {@code FAILED} with the exception's sentence, and leaves as {@code unfinished}.
 */
@FunctionalInterface
public interface RewardFunction {

    /** What a response is worth. */
    VerifiedReward reward(FinishedResponse response);

    /** Whether to find it out takes milliseconds or more, so that {@link #rewardLater} is to be asked. */
    default boolean takesTime() {
        return false;
    }

    /**
     * The same as {@link #reward}, begun here and found out elsewhere. Returns at once, whoever calls.
     *
     * @return completed with an exception if nobody can say
     */
    default CompletionStage<VerifiedReward> rewardLater(FinishedResponse response) {
        return CompletableFuture.completedFuture(reward(response));
    }

    /**
     * Refuses a prompt whose responses it could not judge, such as one without an answer. Asked for every prompt before it is
     * answered, and for all of a dataset before a run begins.
     *
     * @param environmentState of the prompt
     * @throws IllegalArgumentException saying what is missing
     */
    default void requireJudgeable(String environmentState) {}
}
