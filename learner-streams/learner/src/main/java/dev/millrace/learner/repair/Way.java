package dev.millrace.learner.repair;

import java.util.OptionalDouble;

/**
 * A way out of an inconsistency.
 *
 * @param kind what is done
 * @param does what comes of it, as a sentence
 * @param trajectorySeconds what is lost by it: seconds of sampling, over all trajectories that nobody will train on or that are to be
 *     trained on once more; empty where it cannot be told
 * @param command that goes this way, as a person can enter it
 */
public record Way(Kind kind, String does, OptionalDouble trajectorySeconds, String command) {
    /** What can be done. */
    public enum Kind {
        /** Nothing: the run mends it by itself, or somebody else has to act. */
        WAIT("wait"),
        /** Lost batches are given up, and prompts are released in place of theirs. */
        SKIP_BATCH("skip-batch"),
        /** Committed offsets are put back into what their topics hold. */
        MOVE_OFFSET("move-offset"),
        /** Transactions that were left open are aborted, and who writes them is shut out until it begins again. */
        ABORT_TRANSACTION("abort-transaction"),
        /** The run goes on from one of its versions in a new epoch. */
        NEW_EPOCH("new-epoch");

        private final String word;

        Kind(String word) {
            this.word = word;
        }

        /** As it is typed. */
        public String word() {
            return word;
        }
    }
}
