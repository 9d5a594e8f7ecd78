package dev.millrace.learner.repair;

import java.util.OptionalDouble;

/**
 * A way out of an inconsistency.
 *
 * @param trajectorySeconds its cost in seconds of sampling, over all trajectories that will not be trained on or will
 *     be trained on again; empty if unknown
 */
public record Way(Kind kind, String does, OptionalDouble trajectorySeconds, String command) {
    /** Kind of action. */
    public enum Kind {
        /** No action: the run recovers by itself, or another party has to act. */
        WAIT("wait"),
        /** Lost batches are given up, and prompts are released to replace theirs. */
        SKIP_BATCH("skip-batch"),
        /** Committed offsets are moved back into the ranges that their topics hold. */
        MOVE_OFFSET("move-offset"),
        /** Transactions that were left open are aborted, and their writers are fenced until they restart. */
        ABORT_TRANSACTION("abort-transaction"),
        /** The run continues from one of its versions in a new epoch. */
        NEW_EPOCH("new-epoch");

        private final String word;

        Kind(String word) {
            this.word = word;
        }

        public String word() {
            return word;
        }
    }
}
