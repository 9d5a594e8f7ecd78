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

    /**
     * The learning rate of a step: {@code rate · min(1, (n+1)/warm_up_steps) · decay(n)}, n being the steps taken before.
     *
     * <p>A function of n alone, so a restarted learner continues with the same rate. Linear decay is {@code (N-n)/(N-w)}
     * and cosine decay {@code (1 + cos(π (n-w)/(N-w))) / 2} for {@code w <= n <= N}, with w the warm-up steps and N
     * decay.steps; both are 1 before and 0 after.
     */
    double rateAt(long stepsBefore) {
        double warmUp = warmUpSteps == 0 ? 1 : Math.min(1, (stepsBefore + 1.0) / warmUpSteps);
        return learningRate * warmUp * decayAt(stepsBefore);
    }

    private double decayAt(long stepsBefore) {
        if (decay instanceof DecayConfig.Linear linear) {
            return 1 - doneAt(stepsBefore, linear.steps());
        }
        if (decay instanceof DecayConfig.Cosine cosine) {
            return (1 + StrictMath.cos(Math.PI * doneAt(stepsBefore, cosine.steps())))
                    / 2; // strict: the same bits everywhere
        }
        return 1;
    }

    private double doneAt(long stepsBefore, long end) {
        double span = end - (double) warmUpSteps;
        return Math.min(1, Math.max(0, stepsBefore - warmUpSteps) / span);
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
