package dev.millrace.replay;

import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.corrections.diagnostics.StepFacts;
import dev.millrace.replay.retrain.Agreement;
import java.util.List;
import java.util.Optional;

/**
 * One batch under every alternative.
 *
 * @param batchId the batch's number
 * @param version the version that it was assembled against
 * @param assembledAtMs when, Unix milliseconds
 * @param reward mean over its sequences
 * @param stalenessMean in versions at the step, as the recorded batch expected it, over trainable tokens
 * @param isAsRecorded whether the run's own corrections, decided again, give the recorded batch
 * @param rescored what came of computing log-probs again; empty if nobody did
 * @param figures one for each alternative, in their order
 * @param diagnoses one for each, of the steps up to this one; empty where nothing could be trained on
 * @param facts one for each: what the step says of itself, of the run's own as the learner recorded it, of others as far as a decision says it
 */
public record ReplayedStep(
        long batchId,
        long version,
        long assembledAtMs,
        double reward,
        double stalenessMean,
        boolean isAsRecorded,
        Optional<RescoredStep> rescored,
        List<DecidedFigures> figures,
        List<Optional<Diagnosis>> diagnoses,
        List<StepFacts> facts) {

    public ReplayedStep {
        figures = List.copyOf(figures);
        diagnoses = List.copyOf(diagnoses);
        facts = List.copyOf(facts);
    }

    ReplayedStep diagnosed(List<Optional<Diagnosis>> found, List<StepFacts> said) {
        return new ReplayedStep(
                batchId, version, assembledAtMs, reward, stalenessMean, isAsRecorded, rescored, figures, found, said);
    }

    /**
     * What came of computing a batch's log-probs again.
     *
     * @param agreement with the recorded ones
     * @param isAsTrained whether the run's own corrections then decide what the learner's log says the step did; empty where that
     *     is not to be expected
     */
    public record RescoredStep(Agreement agreement, Optional<Boolean> isAsTrained) {}
}
