package dev.millrace.learner;

import dev.millrace.learner.step.LoraConfig;
import dev.millrace.learner.step.StepConfig;

/**
 * The learner.
 *
 * @param step                how a batch becomes optimiser steps
 * @param lora                adapters that are trained in place of the weights
 * @param maxSteps batches of the whole run; 0 for no end
 * @param trajectoryTimeoutMs longest wait without progress for a batch's trajectories; 0 is
 *     {@code run.patience_seconds}
 * @param keptTrajectoryBytes cache of trajectories read before their batch
 * @param idleReportMs interval of reports while no batch comes
 */
public record LearnerConfig(
        StepConfig step,
        LoraConfig lora,
        long maxSteps,
        long trajectoryTimeoutMs,
        long keptTrajectoryBytes,
        long idleReportMs) {

    public LearnerConfig {
        if (maxSteps < 0) {
            throw new IllegalArgumentException("max_steps must be at least 0: " + maxSteps);
        }
        if (trajectoryTimeoutMs < 0) {
            throw new IllegalArgumentException(
                    "trajectory_timeout_ms must be at least 1, or 0 for the run's patience: " + trajectoryTimeoutMs);
        }
        if (keptTrajectoryBytes < 0) {
            throw new IllegalArgumentException("kept_trajectory_bytes must be at least 0: " + keptTrajectoryBytes);
        }
        atLeastOne("idle_report_ms", idleReportMs);
    }

    public static LearnerConfig defaults() {
        return new LearnerConfig(StepConfig.defaults(), LoraConfig.off(), 0, 0, 64L << 20, 30_000);
    }

    private static void atLeastOne(String key, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(key + " must be at least 1: " + value);
        }
    }
}
