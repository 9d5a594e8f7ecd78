package dev.millrace.topology.batch;

/**
 * When a batch is cut, and of what.
 *
 * @param sequences a batch is cut once at least so many sequences are ready, in whole groups
 * @param tokens if not 0, a batch is cut once at least so many trainable tokens are ready, whatever the sequences
 * @param order which of the ready groups come first
 * @param maxOutstanding batches that may wait for the learner; 0 for any number. With a limit, groups are judged by
 *     the newest version just before they are needed, and {@code order} has more to choose from
 * @param recordWeights whether importance weights are written into a batch's entries, for a trainer that cannot make them of the
 *     trajectories' log-probs; our learner can, and they take 4 bytes a token
 */
public record BatchConfig(int sequences, long tokens, Order order, int maxOutstanding, boolean recordWeights) {

    /** Which of the ready groups come first. */
    public enum Order {
        /**
         * Those that became ready first; favours short answers while long ones are still being sampled. A group for which it
         * is the last batch in which it is not too stale goes first, and is waited for while the learner has other batches.
         */
        COMPLETION,
        /**
         * Those that were asked for first: a group waits until all before it are ready or gone. What is batched with
         * what is then the same whatever the timing.
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
            throw new IllegalArgumentException("tokens must be at least 0, which cuts by sequences: " + tokens);
        }
        if (maxOutstanding < 0) {
            throw new IllegalArgumentException(
                    "max_outstanding must be at least 0, which is no limit: " + maxOutstanding);
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
