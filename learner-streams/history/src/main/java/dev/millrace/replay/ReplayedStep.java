package dev.millrace.replay;

import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.corrections.diagnostics.StepFacts;
import dev.millrace.replay.retrain.Agreement;
import java.util.List;
import java.util.Optional;

/**
 * One batch under every alternative.
 *
 * @param isAsRecorded the run's own corrections reproduce the batch
 * @param rescored empty without recomputed log-probs
 * @param diagnoses per alternative, up to this step; empty if nothing was trainable
 * @param facts per alternative: the learner's for the run's own, decisions for others
 */
public record ReplayedStep(
        Batch batch,
        boolean isAsRecorded,
        Optional<RescoredStep> rescored,
        List<DecidedFigures> figures,
        List<Optional<Diagnosis>> diagnoses,
        List<StepFacts> facts) {

    ReplayedStep diagnosed(List<Optional<Diagnosis>> found, List<StepFacts> said) {
        return new ReplayedStep(batch, isAsRecorded, rescored, figures, found, said);
    }

    /**
     * The recorded batch.
     *
     * @param assembledAtMs Unix milliseconds
     * @param reward mean over sequences
     * @param stalenessMean recorded expectation in versions, over trainable tokens
     */
    public record Batch(long id, long version, long assembledAtMs, double reward, double stalenessMean) {}

    /**
     * Result of recomputing a batch's log-probs.
     *
     * @param isAsTrained the run's own corrections then decide as the learner logged; empty if not comparable
     */
    public record RescoredStep(Agreement agreement, Optional<Boolean> isAsTrained) {}
}
