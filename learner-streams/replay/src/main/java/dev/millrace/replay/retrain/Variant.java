package dev.millrace.replay.retrain;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.learner.step.StepConfig;

/**
 * Settings under which is learnt from the recorded batches.
 *
 * @param name for people
 * @param algorithm by which batches are decided and learnt from
 * @param step what the steps are taken with
 */
public record Variant(String name, Algorithm algorithm, StepConfig step) {}
