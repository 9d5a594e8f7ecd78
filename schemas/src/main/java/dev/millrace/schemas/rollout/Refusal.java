package dev.millrace.schemas.rollout;

/**
 * A record is refused: why, which field, and a sentence with the value, the bound and where.
 *
 * @param reason from the closed list
 * @param field the offending field as the schema names it, with an index where it is one of many; empty if it is
 *     the record as a whole
 * @param message one sentence
 * @param runId the run the record says it belongs to; empty if not known
 * @param epoch its epoch, as the record says; -1 if not known
 * @param rolloutId the rollout it is about; empty if not known
 * @param senderRecords how many records of its sender were read since the last one that was refused, this one included; 0 where
 *     nobody counts, or the sender is not to be blamed
 */
public record Refusal(
        RefusalReason reason,
        String field,
        String message,
        String runId,
        int epoch,
        String rolloutId,
        long senderRecords) {

    /** A refusal for which no sender is blamed. */
    public Refusal(RefusalReason reason, String field, String message, String runId, int epoch, String rolloutId) {
        this(reason, field, message, runId, epoch, rolloutId, 0);
    }

    /** A refusal of a record whose owner is not known, as that of bytes that cannot be decoded. */
    public static Refusal of(RefusalReason reason, String field, String message) {
        return new Refusal(reason, field, message, "", -1, "");
    }

    /** The same refusal of a record that says whose it is. */
    public Refusal about(String recordRunId, int recordEpoch, String recordRolloutId) {
        return new Refusal(reason, field, message, recordRunId, recordEpoch, recordRolloutId, senderRecords);
    }

    /** The same refusal, of which the record's sender is to be blamed: one of so many records. */
    public Refusal ofSender(long records) {
        return new Refusal(reason, field, message, runId, epoch, rolloutId, records);
    }
}
