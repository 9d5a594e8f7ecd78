package dev.millrace.learner;

import dev.millrace.corrections.stage.ControlState;
import dev.millrace.learner.batch.IncomingBatch;
import dev.millrace.learner.batch.InconsistentBatchException;
import dev.millrace.learner.step.StepReport;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.VersionFacts;
import dev.millrace.weights.VersionFacts.Progress;

/**
 * The state of training: the live weights and optimiser, and the newest version on the log.
 *
 * <p>The three agree except between a step and its commit. Used by one thread.
 */
final class TrainingState {
    private final Weights weights;
    private final AdamW optimizer;
    private PolicyVersion newest;

    TrainingState(Weights weights, AdamW optimizer, PolicyVersion newest) {
        this.weights = weights;
        this.optimizer = optimizer;
        this.newest = newest;
    }

    Weights weights() {
        return weights;
    }

    AdamW optimizer() {
        return optimizer;
    }

    PolicyVersion newest() {
        return newest;
    }

    /** What the step controls remember with the newest version. */
    ControlState controls() {
        return new ControlState(newest.getControls());
    }

    void published(PolicyVersion manifest) {
        newest = manifest;
    }

    /**
     * Refuses a batch that was assembled against a version which is not made yet.
     *
     * @throws InconsistentBatchException as its staleness would be counted from another history
     */
    void requireKnown(LearnerBatch batch) {
        if (batch.getAssembledVersion() > newest.getVersion()) {
            throw new InconsistentBatchException("batch " + batch.getBatchId() + " was assembled against version "
                    + batch.getAssembledVersion() + ", but the newest this learner knows is " + newest.getVersion()
                    + ": versions were lost, or another learner makes them");
        }
    }

    /** What the version that a batch makes says of itself. */
    VersionFacts next(IncomingBatch batch, StepReport report, long publishedAtMs) {
        return new VersionFacts(
                newest.getVersion() + 1,
                batch.batch().getBatchId(),
                newest.getTokenizerHash(),
                new Progress(batch.rolloutsConsumed(), newest.getTokensTrained() + report.tokensTrained()),
                publishedAtMs,
                report.controls().values(),
                null);
    }
}
