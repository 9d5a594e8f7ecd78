package dev.millrace.learner.step;

/**
 * The learning rate of a step: {@code rate · min(1, (n+1)/warm_up_steps) · decay(n)}, n being the steps taken before.
 *
 * <p>A function of n alone, so a learner that starts again goes on where it was. Linear decay is
 * {@code (N-n)/(N-w)} and cosine decay {@code (1 + cos(π (n-w)/(N-w))) / 2} for {@code w <= n <= N}, with w the warm-up
 * steps and N decay_steps; both are 1 before and 0 after.
 */
final class LearningRate {
    private final OptimizerConfig config;

    LearningRate(OptimizerConfig config) {
        this.config = config;
    }

    /** @param stepsBefore optimiser steps taken so far */
    double at(long stepsBefore) {
        double warmUp = config.warmUpSteps() == 0 ? 1 : Math.min(1, (stepsBefore + 1.0) / config.warmUpSteps());
        return config.learningRate() * warmUp * decay(stepsBefore);
    }

    private double decay(long stepsBefore) {
        double span = config.decaySteps() - config.warmUpSteps();
        double done = Math.min(1, Math.max(0, stepsBefore - config.warmUpSteps()) / span);
        return switch (config.decay()) {
            case NONE -> 1;
            case LINEAR -> 1 - done;
            case COSINE -> (1 + StrictMath.cos(Math.PI * done)) / 2; // strict: the same bits on every platform
        };
    }
}
