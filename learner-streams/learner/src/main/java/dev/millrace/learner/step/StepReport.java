package dev.millrace.learner.step;

import dev.millrace.corrections.stage.ControlState;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.StepEntry;
import java.util.List;
import java.util.Optional;

/**
 * What a batch did to the weights.
 *
 * @param updates         optimiser steps taken; 0 if nothing in the batch was to be trained on, and nothing changed
 * @param learningRate    of the last of them, all controls included; 0 without one
 * @param rolloutsTrained members with a trained token
 * @param tokensTrained   trained tokens
 * @param entries         what became of each member
 * @param figures         how stale and how far off policy that was on which the step was taken
 * @param stages          reports of the stages in force
 * @param controls        what the controls remember after this batch
 * @param metrics         means over the updates, and facts about the batch
 * @param failure         why a stage could not decide about the batch, which is starved then; empty if all could
 */
public record StepReport(
        int updates,
        double learningRate,
        int rolloutsTrained,
        long tokensTrained,
        List<StepEntry> entries,
        StepFigures figures,
        List<StageReport> stages,
        ControlState controls,
        StepMetrics metrics,
        Optional<String> failure) {

    /** Whether nothing in the batch was left to train on. */
    public boolean isStarved() {
        return updates == 0;
    }

    public StepReport {
        entries = List.copyOf(entries);
        stages = List.copyOf(stages);
    }
}
