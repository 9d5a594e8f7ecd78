package dev.millrace.replay;

/**
 * First difference of a replay from the run.
 *
 * @param task such as {@code join-3}
 * @param record topic, partition, offset, and number among the task's records
 * @param field such as {@code entries[3].advantage}; empty if one record is missing
 */
public record ReplayDifference(String task, String record, String field, String recorded, String replayed) {

    @Override
    public String toString() {
        return record + " of " + task + (field.isEmpty() ? "" : ", " + field) + ": the run has " + recorded
                + ", the replay " + replayed;
    }

    /** Ends a task's replay at the first difference. */
    static final class ReplayDifferenceException extends RuntimeException {
        private static final long serialVersionUID = 1L;
        private final transient ReplayDifference difference;

        ReplayDifferenceException(ReplayDifference difference) {
            super(difference.toString(), null, false, false);
            this.difference = difference;
        }

        ReplayDifference difference() {
            return difference;
        }
    }
}
