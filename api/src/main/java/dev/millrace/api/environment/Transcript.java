package dev.millrace.api.environment;

/**
 * Tokens of the response so far, and the author of each.
 *
 * <p>A view on the engine's own buffers: it is valid only during the call. Token ids are the sampled ones, never
 * re-encoded. Positions count from the first token after the prompt.
 */
public interface Transcript {

    /** Response tokens so far, environment tokens included. */
    int length();

    /** Token id at a response position. */
    int token(int position);

    /** True if the policy sampled the token, false if the environment inserted it. */
    boolean byPolicy(int position);
}
