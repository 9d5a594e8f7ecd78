package dev.millrace.api.environment;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * Rewards finished responses in place of their environment. Extension point; {@code reward: NAME} chooses one for a run.
 *
 * <p>An implementation is a record of settings, deterministic like an {@link Episode}: the same rollout and request give the same reward.
 * Thread-safe. It is called on the committing thread, so a slow function returns true from {@link #takesTime()} and implements
 * {@link #rewardLater}. A reward that takes minutes belongs on the topic {@code rewards}.
 *
 * <p>An exception fails the rollout: it ends as {@code FAILED} with the exception's sentence, and leaves as {@code unfinished}.
 */
@FunctionalInterface
public interface RewardFunction {

    /** Returns the reward of a response. */
    VerifiedReward reward(FinishedResponse response);

    /** True if a reward takes milliseconds or more; then {@link #rewardLater} is called. */
    default boolean takesTime() {
        return false;
    }

    /**
     * Asynchronous {@link #reward}. Returns at once.
     *
     * @return completes exceptionally without a reward
     */
    default CompletionStage<VerifiedReward> rewardLater(FinishedResponse response) {
        return CompletableFuture.completedFuture(reward(response));
    }

    /**
     * Refuses a prompt that it cannot reward, such as one without an answer. Called for every prompt before it is
     * sampled, and for a whole dataset before a run begins.
     *
     * @param environmentState of the prompt
     * @throws IllegalArgumentException saying what is missing
     */
    default void requireJudgeable(String environmentState) {}
}
