package dev.millrace.learner.batch;

import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.refusal.RefusalReason;
import dev.millrace.schemas.refusal.RefusedException;
import dev.millrace.schemas.run.RunIdentity;

/**
 * Decides whether a batch is the next one: batch ids of a policy count from 0 without a gap, and a version is made by
 * exactly one of them.
 *
 * <p>Not thread-safe.
 */
public final class BatchSequence {
    private final RunIdentity run;
    private final boolean offsetsKnown;
    private long last;

    /**
     * @param lastTrained  the batch that made the newest version; -1 if that is the initial one
     * @param offsetsKnown whether reading began at a committed offset, which was committed together with that version.
     *     Without one, reading began at the beginning of the log and meets trained batches again
     */
    public BatchSequence(RunIdentity run, long lastTrained, boolean offsetsKnown) {
        this.run = run;
        this.last = lastTrained;
        this.offsetsKnown = offsetsKnown;
    }

    /**
     * True if the batch is to be trained on now, false if it made an earlier version and is passed over.
     *
     * @param where topic, partition and offset, for the sentence
     * @throws RefusedException if it belongs to another run, policy or an older epoch: it goes to the dead letters
     * @throws OutOfSequenceException if no batch on the log can be the next one, which only a person can mend
     */
    public boolean isNext(LearnerBatch batch, String where) throws RefusedException {
        requireOurs(batch, where);
        long id = batch.getBatchId();
        if (id == last + 1) {
            return true;
        }
        if (id <= last && !offsetsKnown) {
            return false;
        }
        if (id <= last) {
            throw new OutOfSequenceException(
                    "batch " + id + " at " + where + " was trained on already: the newest version"
                            + " was made by batch " + last
                            + ", and the offset committed with it lies behind this batch. Someone moved"
                            + " the group's offset, or two assemblers write to this topic");
        }
        throw new OutOfSequenceException("batch " + (last + 1) + " is missing: "
                + (last < 0 ? "the first on the log is" : "after batch " + last + " comes") + " batch " + id + " at "
                + where
                + ". Its record was deleted or refused; roll the run back to a new epoch, or restore the topic");
    }

    /** The batch was trained on and its version committed. */
    public void trained(long batchId) {
        if (batchId != last + 1) {
            throw new IllegalStateException("batch " + batchId + " was trained on after batch " + last);
        }
        last = batchId;
    }

    /** The batch that is due. */
    public long next() {
        return last + 1;
    }

    private void requireOurs(LearnerBatch batch, String where) throws RefusedException {
        if (!run.runId().equals(batch.getRunId())) {
            throw new RefusedException(
                    RefusalReason.WRONG_RUN,
                    "run_id",
                    "run_id is " + batch.getRunId() + ", this learner trains " + run.runId());
        }
        if (batch.getEpoch() > run.epoch()) {
            throw new OutOfSequenceException("batch " + batch.getBatchId() + " at " + where + " is of epoch "
                    + batch.getEpoch() + ", but this learner was started for epoch " + run.epoch()
                    + ": the run was rolled back and goes on elsewhere; start the learner for the new epoch");
        }
        if (batch.getEpoch() < run.epoch()) {
            throw new RefusedException(
                    RefusalReason.WRONG_EPOCH,
                    "epoch",
                    "epoch is " + batch.getEpoch() + ", this learner trains epoch " + run.epoch());
        }
        if (!run.policyId().equals(batch.getPolicyId())) {
            throw new RefusedException(
                    RefusalReason.IDENTITY,
                    "policy_id",
                    "policy_id is " + batch.getPolicyId() + ", this learner trains " + run.policyId());
        }
    }
}
