package dev.millrace.api.environment;

import java.util.Objects;

/**
 * A prompt and its environment's state.
 *
 * @param tokens token ids, at least one; owned by the prompt
 * @param environmentState in the environment's own notation
 */
public record Prompt(int[] tokens, String environmentState) {

    public Prompt {
        Objects.requireNonNull(environmentState, "environmentState");
        if (tokens.length == 0) {
            throw new IllegalArgumentException("a prompt needs at least one token");
        }
    }
}
