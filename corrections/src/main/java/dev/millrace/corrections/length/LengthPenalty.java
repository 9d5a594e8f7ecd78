package dev.millrace.corrections.length;

import dev.millrace.corrections.TokenBatch;

/**
 * What the length of an answer costs: an amount to subtract from its reward, before advantages are taken.
 *
 * <p>Immutable and thread-safe. A sequence without trained tokens costs nothing.
 */
public interface LengthPenalty {

    /**
     * One amount per sequence, not negative.
     *
     * @param batch lengths are trained tokens, groups are prompts
     * @param correct whether each sequence solved its problem
     * @throws IllegalArgumentException if there is not one verdict per sequence
     */
    double[] perSequence(TokenBatch batch, boolean[] correct);
}
