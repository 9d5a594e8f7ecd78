package dev.millrace.corrections.rollout;

import dev.millrace.corrections.ratio.TokenBlock;

/**
 * One computation over the blocks of a batch.
 *
 * <p>A pass keeps its results only per sequence, in arrays with one slot each. So several workers may run one pass at
 * once as long as each sequence has one worker. A total added up in sequence order afterwards does not depend on the
 * number of workers.
 */
interface BlockPass {

    /** Takes in the next block of {@code sequence}; blocks of a sequence come in order. */
    default void block(TokenBlock block, int sequence) {}

    /** Called once after the last block of {@code sequence}, also if it had none. */
    default void endOfSequence(int sequence) {}
}
