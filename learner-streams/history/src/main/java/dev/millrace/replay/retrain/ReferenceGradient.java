package dev.millrace.replay.retrain;

/**
 * The gradient of fresh groups that the very weights sampled, without corrections: what the others are held against.
 *
 * @param sequences that were sampled
 * @param norm of it
 * @param signal unbiased estimate of the squared norm of the gradient that it estimates; below 0 where there is nothing but
 *     noise
 * @param noise its variance
 * @param isSomething whether others can be held against it: it has signal, and is not nothing
 */
public record ReferenceGradient(int sequences, double norm, double signal, double noise, boolean isSomething) {}
