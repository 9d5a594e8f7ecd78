package dev.millrace.learner.step;

import dev.millrace.policy.autodiff.AdamW;

/**
 * AdamW and what bounds its step.
 *
 * @param learningRate largest learning rate; the step scale multiplies it
 * @param warmUpSteps linear warm-up steps; 0 for none
 * @param decay schedule after warm-up
 * @param beta1        decay of the first moment
 * @param beta2        decay of the second moment
 * @param epsilon epsilon of AdamW
 * @param weightDecay decoupled weight decay of matrices
 * @param maxGradNorm gradient clipping by L2 norm; 0 for none
 */
public record OptimizerConfig(
        double learningRate,
        int warmUpSteps,
        DecayConfig decay,
        double beta1,
        double beta2,
        double epsilon,
        double weightDecay,
        double maxGradNorm) {

    public OptimizerConfig {
        finite("learning_rate", learningRate, 0, Double.MAX_VALUE);
        if (warmUpSteps < 0) {
            throw new IllegalArgumentException("warm_up_steps must be at least 0: " + warmUpSteps);
        }
        if (decay instanceof DecayConfig.Linear linear) {
            afterWarmUp(linear.steps(), warmUpSteps);
        }
        if (decay instanceof DecayConfig.Cosine cosine) {
            afterWarmUp(cosine.steps(), warmUpSteps);
        }
        finite("beta1", beta1, 0, Math.nextDown(1.0));
        finite("beta2", beta2, 0, Math.nextDown(1.0));
        finite("epsilon", epsilon, Double.MIN_VALUE, Double.MAX_VALUE);
        finite("weight_decay", weightDecay, 0, Double.MAX_VALUE);
        finite("max_grad_norm", maxGradNorm, 0, Double.MAX_VALUE);
    }

    /** Settings under which the default task is learnt on every seed tried. */
    public static OptimizerConfig defaults() {
        return new OptimizerConfig(2e-3, 20, new DecayConfig.Constant(), 0.9, 0.999, 1e-5, 0, 1);
    }

    AdamW.Config adamW() {
        return new AdamW.Config(beta1, beta2, epsilon, weightDecay);
    }

    private static void afterWarmUp(long steps, int warmUpSteps) {
        if (steps <= warmUpSteps) {
            throw new IllegalArgumentException("decay.steps must be above warm_up_steps=" + warmUpSteps + ": " + steps);
        }
    }

    private static void finite(String key, double value, double low, double high) {
        if (!(value >= low && value <= high)) { // negated so that NaN is refused too
            throw new IllegalArgumentException(key + " must be " + bound(low, high) + ": " + value);
        }
    }

    private static String bound(double low, double high) {
        String lower = low == 0 ? "at least 0" : "above 0";
        return lower + (high < 1 ? " and below 1" : " and finite");
    }
}
