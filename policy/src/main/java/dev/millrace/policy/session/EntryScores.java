package dev.millrace.policy.session;

/**
 * What the policy thinks of k tokens at each position, beside the given one; packed as in {@link SequenceBatch}.
 *
 * @param scores     of the given tokens
 * @param k          entries of a position
 * @param logProbs   {@code [packed][k]}; minus infinity of a token that could not be drawn
 * @param remainders one per packed token: log of the probability of all other tokens together; minus infinity where nothing
 *     is left
 */
public record EntryScores(TokenScores scores, int k, float[] logProbs, float[] remainders) {}
