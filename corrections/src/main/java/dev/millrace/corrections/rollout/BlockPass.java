package dev.millrace.corrections.rollout;

import dev.millrace.corrections.ratio.TokenBlock;

/**
 * One thing to find out, or to write, while the blocks of a batch go by.
 *
 * <p>A pass keeps what it finds per sequence, in arrays with a slot for each, and nowhere else. So several workers may
 * run one pass at once as long as each sequence has one worker, and a total added up in sequence order afterwards does
 * not depend on how many there were.
 */
interface BlockPass {

    /** Takes in the next block of {@code sequence}; blocks of a sequence come in order. */
    void block(TokenBlock block, int sequence);

    /** Called once after the last block of {@code sequence}, also if it had none. */
    void endOfSequence(int sequence);
}
