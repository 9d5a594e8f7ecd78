package dev.millrace.api.environment;

/**
 * One response being written, from the environment's side. Single-use: one episode per rollout, never reset.
 *
 * <p>Deterministic: what an episode does is a function of the request it was begun with and of the transcript. It
 * draws no randomness and looks at no clock, so that the same tokens get the same reward on every machine and whoever
 * holds the record can verify it again. What may depend on time is only how often it answers {@link StepResult#LATER} before
 * it reacts. Called by one thread, after each token the policy sampled and once at the end.
 */
public interface Episode {

    /**
     * Looks at the response after the policy's newest token, which is the last one of the transcript.
     *
     * <p>Called in the generator's innermost loop: return the constants of {@link StepResult} where nothing is said, and
     * never block. What takes time is begun, on another thread, and answered with {@link StepResult#LATER}; the generator then
     * lets this sequence wait, goes on with the others, and asks again about the same transcript.
     */
    StepResult afterToken(Transcript response);

    /**
     * Rewards the finished response, from its tokens alone. It may have ended anywhere: by the environment, by the
     * end token, or because the token limit was reached.
     */
    VerifiedReward verify(Transcript response);
}
