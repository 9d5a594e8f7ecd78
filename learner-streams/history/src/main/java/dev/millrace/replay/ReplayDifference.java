package dev.millrace.replay;

/**
 * The first place where a replay and the run part.
 *
 * @param task whose record it is, such as {@code join-3}
 * @param record which record: topic, partition and offset, and its number among the task's records
 * @param field in which it differs, such as {@code entries[3].advantage}; empty if one of the two has no such record
 * @param recorded what the run has
 * @param replayed what the replay made
 */
public record ReplayDifference(String task, String record, String field, String recorded, String replayed) {

    @Override
    public String toString() {
        return record + " of " + task + (field.isEmpty() ? "" : ", " + field) + ": the run has " + recorded
                + ", the replay " + replayed;
    }

    /** Ends the replay of a task at the first difference. */
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
