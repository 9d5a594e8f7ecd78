package dev.millrace.api.environment;

/**
 * Rewards finished responses in the place of their environment; the door through which reward functions come. {@code reward: NAME}
 * chooses one for a run.
 *
 * <p>An implementation is a record of settings. Deterministic, as an {@link Episode} is: whoever holds a rollout and its request gets
 * the same reward again. Thread-safe; called on the generator's thread, so what takes its time holds up all sequences: what needs
 * seconds rather writes records on the topic {@code rewards}.
 */
@FunctionalInterface
public interface RewardFunction {

    /** What a response is worth. */
    VerifiedReward reward(FinishedResponse response);

    /**
     * Refuses a prompt whose responses it could not judge, such as one without an answer. Asked for every prompt before it is
     * answered, and for all of a dataset before a run begins.
     *
     * @param environmentState of the prompt
     * @throws IllegalArgumentException saying what is missing
     */
    default void requireJudgeable(String environmentState) {}
}
