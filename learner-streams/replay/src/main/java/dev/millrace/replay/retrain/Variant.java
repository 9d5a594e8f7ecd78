package dev.millrace.replay.retrain;

import dev.millrace.learner.step.StepConfig;
import dev.millrace.stages.CorrectionConfig;

/**
 * Settings under which is learnt from the recorded batches.
 *
 * @param name for people
 * @param corrections by which batches are decided
 * @param step by which they are learnt from
 */
public record Variant(String name, CorrectionConfig corrections, StepConfig step) {}
