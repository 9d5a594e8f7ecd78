package dev.millrace.corrections.m2po;

/**
 * What an M2PO mask did to one batch.
 *
 * @param candidates tokens the rule looked at: all trained ones, or the harmful ones among them
 * @param before mean squared log ratio over the candidates, before masking; 0 without candidates
 * @param after the same over the candidates that were kept
 * @param withinThreshold whether {@code after} is below the threshold. False in one case only: every candidate alone is
 *     at or above it, and then the smallest is kept all the same
 */
public record SecondMoment(int candidates, int masked, double before, double after, boolean withinThreshold) {}
