package dev.millrace.api.environment;

import dev.millrace.api.tokenizer.Tokenizer;
import java.util.List;

/**
 * Continues and verifies rollouts: adds text between the policy's turns and rewards the result.
 *
 * <p>The request's {@code environment_state} is an episode's only input. So an environment has no settings and no
 * state, and a generator can serve any request whose environment it has. Thread-safe.
 */
public interface Environment {

    /** Name in {@code PromptRequest.environment}: lower-case letters, digits and '-'. */
    String name();

    /**
     * Token that ends the policy's response, or -1 if only the environment and the token limit end it. With -1 a
     * sampled end token is an ordinary token.
     */
    int endToken();

    /**
     * Stop texts: the first one to appear ends the response, and a reward judges the text before it. Empty unless the episode ends
     * responses at texts.
     */
    default List<String> stopTexts() {
        return List.of();
    }

    /**
     * Returns this environment for a run's vocabulary, if it reads or writes text. Called once per run; must not open
     * resources.
     */
    default Environment in(Tokenizer tokenizer) {
        return this;
    }

    /**
     * Begins the episode of one rollout.
     *
     * @param state {@code environment_state} of the request, in this environment's own notation
     * @throws IllegalArgumentException if the state cannot be read; the message says why. The request is then refused
     */
    Episode begin(String state);

    /**
     * As {@link #begin(String)} for an environment that needs more than the state. An exception fails only this
     * rollout.
     */
    default Episode begin(EpisodeStart start) {
        return begin(start.state());
    }

    /**
     * Refuses an invalid state. Called for every request before its rollouts begin; has no side effects.
     *
     * @throws IllegalArgumentException as {@link #begin(String)}
     */
    default void requirePlayable(String state) {
        begin(state);
    }
}
