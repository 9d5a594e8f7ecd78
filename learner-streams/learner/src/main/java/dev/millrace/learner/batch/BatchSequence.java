package dev.millrace.learner.batch;

import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.run.RunIdentity;

/**
 * Decides where a batch stands: batch ids of a policy count from 0 without a gap, and a version is made by exactly one of
 * them.
 *
 * <p>Not thread-safe.
 */
final class BatchSequence {
    private final RunIdentity run;
    private long last;

    /** Where a batch stands. */
    enum Place {
        /** It is trained on now. */
        DUE,
        /** It, or the batch that this is a copy of, was consumed before: it is passed over. */
        KNOWN,
        /** Batches before it are still to come. */
        AHEAD
    }

    /** @param lastConsumed the last batch that was consumed; -1 if none was */
    BatchSequence(RunIdentity run, long lastConsumed) {
        this.run = run;
        this.last = lastConsumed;
    }

    /** @throws RefusedException if it belongs to another run, policy or epoch: it goes to the dead letters */
    Place placeOf(LearnerBatch batch) throws RefusedException {
        requireOurs(batch);
        long id = batch.getBatchId();
        return id <= last ? Place.KNOWN : id == last + 1 ? Place.DUE : Place.AHEAD;
    }

    /** The batch was consumed, and what it made is committed. */
    void consumed(long batchId) {
        if (batchId != last + 1) {
            throw new IllegalStateException("batch " + batchId + " was trained on after batch " + last);
        }
        last = batchId;
    }

    /** The batch that is due. */
    long next() {
        return last + 1;
    }

    private void requireOurs(LearnerBatch batch) throws RefusedException {
        if (!run.runId().equals(batch.getRunId())) {
            throw new RefusedException(
                    RefusalReason.WRONG_RUN,
                    "run_id",
                    "run_id is " + batch.getRunId() + ", this learner trains " + run.runId());
        }
        if (batch.getEpoch() != run.epoch()) {
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
        if (batch.getBatchId() < 0) {
            throw new RefusedException(
                    RefusalReason.IDENTITY, "batch_id", "batch_id must be at least 0: " + batch.getBatchId());
        }
    }
}
