package dev.millrace.schemas.rollout;

/**
 * A refused record: reason, field, and a sentence with the value, the bound and the position.
 *
 * @param reason from the closed list
 * @param field the offending field as named in the schema, with an index in a list; empty for the whole record
 * @param runId run id in the record; empty if unknown
 * @param epoch epoch in the record; -1 if unknown
 * @param rolloutId its rollout; empty if unknown
 * @param senderRecords records read from its sender since its last refused one, including this one; 0 if not counted or
 * not attributed
 */
public record Refusal(
        RefusalReason reason,
        String field,
        String message,
        String runId,
        int epoch,
        String rolloutId,
        long senderRecords) {

    /** A refusal that is not attributed to a sender. */
    public Refusal(RefusalReason reason, String field, String message, String runId, int epoch, String rolloutId) {
        this(reason, field, message, runId, epoch, rolloutId, 0);
    }

    /** A refusal of a record of unknown owner, such as undecodable bytes. */
    public static Refusal of(RefusalReason reason, String field, String message) {
        return new Refusal(reason, field, message, "", -1, "");
    }

    /** The same refusal with the record's owner. */
    public Refusal about(String recordRunId, int recordEpoch, String recordRolloutId) {
        return new Refusal(reason, field, message, recordRunId, recordEpoch, recordRolloutId, senderRecords);
    }

    /** The same refusal, attributed to the record's sender, with the number of records read from it. */
    public Refusal ofSender(long records) {
        return new Refusal(reason, field, message, runId, epoch, rolloutId, records);
    }
}
