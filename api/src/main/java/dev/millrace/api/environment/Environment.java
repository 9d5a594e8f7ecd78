package dev.millrace.api.environment;

import dev.millrace.api.tokenizer.Tokenizer;
import java.util.List;

/**
 * Continues and verifies rollouts: says what happens between the policy's turns and what the result is worth.
 *
 * <p>Everything an episode needs to know comes with its request ({@code environment_state}), so an environment has no
 * settings and no state of its own, and a generator can serve any request whose environment it knows. Thread-safe.
 */
public interface Environment {

    /** Name in {@code PromptRequest.environment}: lower-case letters, digits and '-'. */
    String name();

    /**
     * Token that ends the policy's response, or -1 if only the environment and the token limit end it. With -1 a sampled end token is a
     * token like any other.
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
     * The same for a run in this vocabulary, of an environment that reads or says text. Asked once where a run's environments are put
     * together, and opens nothing.
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
     * The same for an environment that needs to know more of the rollout than its state. What it throws costs that rollout alone.
     */
    default Episode begin(EpisodeStart start) {
        return begin(start.state());
    }

    /**
     * Refuses a state that it could not play. Asked for every request, before any of its rollouts begins; begins nothing.
     *
     * @throws IllegalArgumentException as {@link #begin(String)}
     */
    default void requirePlayable(String state) {
        begin(state);
    }
}
