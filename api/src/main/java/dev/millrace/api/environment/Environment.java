package dev.millrace.api.environment;

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
     * Token with which the policy ends its response, or -1 if only the environment and the token limit end it. Where
     * it is -1, a sampled end token is a token like any other.
     */
    int endToken();

    /**
     * Texts of which the first to appear ended the response: a reward judges what stands before it. None unless the episode ends
     * responses at texts.
     */
    default List<String> stopTexts() {
        return List.of();
    }

    /**
     * Begins the episode of one rollout.
     *
     * @param state {@code environment_state} of the request, in this environment's own notation
     * @throws IllegalArgumentException if the state cannot be read; the message says why. The request is then refused
     */
    Episode begin(String state);
}
