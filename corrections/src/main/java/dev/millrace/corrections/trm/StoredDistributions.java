package dev.millrace.corrections.trm;

/**
 * What was stored of the behavior and the current policy's next-token distributions at every token.
 *
 * <p>Values are natural logs of probabilities, of both policies at the same vocabulary entries, packed
 * {@code [tokens][entries]}. Negative infinity is the probability 0. The arrays are read, not copied, and must not
 * change while they are used.
 */
public sealed interface StoredDistributions permits FullDistributions, TopKDistributions {

    int tokens();

    /**
     * KL(behavior || current) at a packed token, or what {@link TopKDistributions} can say of it. Infinite where the
     * current policy rules out what the behavior policy does not.
     *
     * @throws IllegalArgumentException if what is stored at the token is not a distribution; the message names neither
     *     sequence nor token, which the caller knows
     */
    double klAt(int token);

    /**
     * Returns whether everything that the behavior policy could sample at a packed token is stored. {@link #klAt} is
     * then the divergence itself, otherwise a lower bound.
     */
    boolean isWhole(int token);

    /** Total variation distance at a packed token, in [0, 1]; errors as {@link #klAt}. */
    double totalVariationAt(int token);
}
