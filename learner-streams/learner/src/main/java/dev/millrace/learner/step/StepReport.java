package dev.millrace.learner.step;

import dev.millrace.corrections.stage.ControlState;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.StepEntry;
import java.util.List;
import java.util.Optional;

/**
 * What a batch did to the weights.
 *
 * @param learningRate    of the last update, all controls included; 0 without one
 * @param entries         trained tokens, or the masking stage, of each member
 * @param figures         staleness and off-policy gap of the trained tokens
 * @param controls        state of the controls after this batch
 * @param metrics         means over the updates, and facts about the batch
 * @param failure         why a stage failed on the batch, which is then starved; empty if none did
 */
public record StepReport(
        double learningRate,
        List<StepEntry> entries,
        StepFigures figures,
        List<StageReport> stages,
        ControlState controls,
        StepMetrics metrics,
        Optional<String> failure) {

    /** Whether nothing in the batch was left to train on. */
    public boolean isStarved() {
        return metrics.updates() == 0;
    }

    /** Members with a trained token. */
    public int rolloutsTrained() {
        return (int)
                entries.stream().filter(entry -> entry.getTrainedTokens() > 0).count();
    }

    /** Trained tokens. */
    public long tokensTrained() {
        return entries.stream().mapToLong(StepEntry::getTrainedTokens).sum();
    }

    public StepReport {
        entries = List.copyOf(entries);
        stages = List.copyOf(stages);
    }
}
