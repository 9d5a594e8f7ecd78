package dev.millrace.api.environment;

/**
 * What an episode sees: the response so far, token by token, and who wrote each.
 *
 * <p>A view on the engine's own buffers: it is valid during the call it is handed to and must not be kept. Token ids
 * are the sampled ones; nothing is decoded on the way. Positions count from the first token after the prompt.
 */
public interface Transcript {

    /** Response tokens so far, environment tokens included. */
    int length();

    /** Token id at a response position. */
    int token(int position);

    /** True if the policy sampled the token, false if the environment inserted it. */
    boolean byPolicy(int position);
}
