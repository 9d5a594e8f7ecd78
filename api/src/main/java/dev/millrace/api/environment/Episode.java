package dev.millrace.api.environment;

import java.util.Optional;
import java.util.concurrent.CompletionStage;

/**
 * One response being written, from the environment's side. Single-use: one episode per rollout, never reset.
 *
 * <p>Deterministic: an episode is a function of its request and the transcript. It uses no randomness and no clock, so that the same
 * tokens get the same reward on every machine and a record can be verified again. Only the number of {@link StepResult#LATER} answers
 * may depend on time. Called by one thread, after each token that the policy sampled and once at the end.
 *
 * <p>An episode that cannot continue throws a {@link RuntimeException} with a sentence. Its rollout ends as {@code FAILED} with the
 * sentence, is not trained on, and leaves as {@code unfinished}; other rollouts continue.
 */
public interface Episode {

    /**
     * Reacts to the policy's newest token, the last one of the transcript.
     *
     * <p>Called in the generator's innermost loop: return the constants of {@link StepResult} if there is no text, and
     * never block. Start slow work on another thread and return {@link StepResult#LATER}: the generator continues with
     * other sequences and calls again with the same transcript.
     */
    StepResult afterToken(Transcript response);

    /**
     * Rewards the finished response, from its tokens alone. It may have ended anywhere: by the environment, by the
     * end token, or because the token limit was reached.
     */
    VerifiedReward verify(Transcript response);

    /**
     * Starts a slow reward of the finished response. Called once, in place of {@link #verify}. The transcript does not change until the
     * stage completes, and any thread may read it.
     *
     * @return completes with the reward, or exceptionally without one; empty if {@link #verify} is fast
     */
    default Optional<CompletionStage<VerifiedReward>> verifyLater(Transcript response) {
        return Optional.empty();
    }

    /** Called if the response is aborted before it was verified. Returns at once. */
    default void abandon() {}

    /**
     * Returns whether {@link #afterToken} is also called before the policy's first token, so that the environment
     * speaks first.
     */
    default boolean opens() {
        return false;
    }
}
