package dev.millrace.corrections.advantage;

/**
 * Advantages and the returns they were made from, one of each per packed token; the arrays belong to the caller.
 *
 * @param advantages what an objective takes
 * @param returns reward to go, what a value function is fitted to
 */
public record AdvantagesAndReturns(float[] advantages, float[] returns) {}
