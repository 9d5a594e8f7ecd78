package dev.millrace.policy.session;

/**
 * Log-probs of k tokens at each position in addition to the given one; packed as in {@link SequenceBatch}.
 *
 * @param logProbs {@code [packed][k]}; minus infinity for a token that could not be drawn
 * @param remainders one per packed token: log of the probability of all other tokens together; minus infinity if there
 *     are none
 */
public record EntryScores(TokenScores scores, int k, float[] logProbs, float[] remainders) {}
