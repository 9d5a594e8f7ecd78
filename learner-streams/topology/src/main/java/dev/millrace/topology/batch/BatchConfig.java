package dev.millrace.topology.batch;

/**
 * When a batch is cut, and of what.
 *
 * @param sequences ready sequences that cut a batch, in whole groups
 * @param tokens ready trainable tokens that cut a batch, in place of sequences; 0 for none
 * @param order order of ready groups
 * @param maxOutstanding most batches waiting for the learner; 0 for no limit
 * @param recordWeights write importance weights into batches for other trainers, 4 bytes a token
 */
public record BatchConfig(int sequences, long tokens, Order order, int maxOutstanding, boolean recordWeights) {

    /** Which of the ready groups come first. */
    public enum Order {
        /**
         * Those that became ready first; favours short answers while long ones are still being sampled. A group that
         * would be too stale for any later batch goes first, and the cutter waits for it while the learner has other
         * batches.
         */
        COMPLETION,
        /**
         * Those that were requested first: a group waits until all before it are ready or gone. The composition of
         * batches is then independent of timing.
         */
        SUBMISSION,
        /** Those sampled by the newest versions. */
        FRESHEST
    }

    public BatchConfig {
        if (sequences < 1) {
            throw new IllegalArgumentException("sequences must be at least 1: " + sequences);
        }
        if (tokens < 0) {
            throw new IllegalArgumentException("tokens must be at least 0, where 0 cuts by sequences: " + tokens);
        }
        if (maxOutstanding < 0) {
            throw new IllegalArgumentException(
                    "max_outstanding must be at least 0, where 0 is no limit: " + maxOutstanding);
        }
    }

    /** 256 sequences, in the order of completion, as soon as they are ready. */
    public static BatchConfig defaults() {
        return new BatchConfig(256, 0, Order.COMPLETION, 0, false);
    }

    /** True if this much is enough for a batch. */
    boolean isEnough(int readySequences, long readyTokens) {
        return tokens > 0 ? readyTokens >= tokens : readySequences >= sequences;
    }
}
