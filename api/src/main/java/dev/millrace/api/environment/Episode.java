package dev.millrace.api.environment;

import java.util.Optional;
import java.util.concurrent.CompletionStage;

/**
 * One response being written, from the environment's side. Single-use: one episode per rollout, never reset.
 *
 * <p>Deterministic: what an episode does is a function of the request it was begun with and of the transcript. It
 * draws no randomness and looks at no clock, so that the same tokens get the same reward on every machine and whoever
 * holds the record can verify it again. What may depend on time is only how often it answers {@link StepResult#LATER} before
 * it reacts. Called by one thread, after each token the policy sampled and once at the end.
 *
 * <p>An episode that cannot go on throws a {@link RuntimeException} with a sentence. That costs its rollout: it ends as {@code FAILED}
 * with the sentence, is not trained on, and leaves as {@code unfinished}; all others go on.
 */
public interface Episode {

    /**
     * Looks at the response after the policy's newest token, which is the last one of the transcript.
     *
     * <p>Called in the generator's innermost loop: return the constants of {@link StepResult} where nothing is said, and
     * never block. What takes time is begun, on another thread, and answered with {@link StepResult#LATER}; the generator then
     * lets this sequence wait, continues with the others, and asks again about the same transcript.
     */
    StepResult afterToken(Transcript response);

    /**
     * Rewards the finished response, from its tokens alone. It may have ended anywhere: by the environment, by the
     * end token, or because the token limit was reached.
     */
    VerifiedReward verify(Transcript response);

    /**
     * Begins to reward the finished response, where that takes time. Called once, in the place of {@link #verify}; the transcript
     * stays as it is until the stage is complete, and may be read by any thread.
     *
     * @return what it is worth, when it is known; completed with an exception if nobody can say. Empty where {@link #verify} says so
     *     in no time
     */
    default Optional<CompletionStage<VerifiedReward>> verifyLater(Transcript response) {
        return Optional.empty();
    }

    /** The response is given up before it was verified: nobody asks any more. Returns at once. */
    default void abandon() {}

    /**
     * Whether it is to be asked, as {@link #afterToken} does, before the policy's first token as well: what it says then comes before all
     * of the policy's.
     */
    default boolean opens() {
        return false;
    }
}
