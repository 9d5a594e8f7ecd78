package dev.millrace.policy.session;

/**
 * The top tokens at a position, the likeliest first, and the remainder.
 *
 * @param ids       all different
 * @param logProbs one per id; minus infinity for a token that could not be drawn
 * @param remainder log of the probability of all others together; minus infinity if there are none
 */
public record TopTokens(int[] ids, float[] logProbs, float remainder) {}
