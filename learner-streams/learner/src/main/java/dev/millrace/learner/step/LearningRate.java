package dev.millrace.learner.step;

/**
 * The learning rate of a step: {@code rate · min(1, (n+1)/warm_up_steps) · decay(n)}, n being the steps taken before.
 *
 * <p>A function of n alone, so a restarted learner continues with the same rate. Linear decay is {@code (N-n)/(N-w)}
 * and cosine decay {@code (1 + cos(π (n-w)/(N-w))) / 2} for {@code w <= n <= N}, with w the warm-up steps and N
 * decay.steps; both are 1 before and 0 after.
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
        if (config.decay() instanceof DecayConfig.Linear linear) {
            return 1 - done(stepsBefore, linear.steps());
        }
        if (config.decay() instanceof DecayConfig.Cosine cosine) {
            return (1 + StrictMath.cos(Math.PI * done(stepsBefore, cosine.steps())))
                    / 2; // strict: the same bits everywhere
        }
        return 1;
    }

    private double done(long stepsBefore, long end) {
        double span = end - (double) config.warmUpSteps();
        return Math.min(1, Math.max(0, stepsBefore - config.warmUpSteps()) / span);
    }
}
