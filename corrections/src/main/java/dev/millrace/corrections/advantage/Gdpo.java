package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;

/**
 * GDPO: each component of the reward is normalised within its group before they are added,
 * {@code A = whiten(Σ_k w_k · (r_k − mean_k) / (std_k + 1e-6))}, so that no component drowns the others.
 *
 * <p>Unit: sequence, against its group, then whitened over all trained tokens of the batch. In a plain sum the
 * component with the widest spread decides alone. Groups of one keep each component's value. At least 2 trained tokens
 * are needed.
 *
 * <p>Source: arXiv 2601.05242.
 */
public final class Gdpo {
    private final double[] componentWeights;

    /** @param componentWeights one finite weight per component; all 1 in the paper */
    public Gdpo(double... componentWeights) {
        if (componentWeights.length == 0) {
            throw new IllegalArgumentException("at least one reward component is needed");
        }
        for (int k = 0; k < componentWeights.length; k++) {
            if (!Double.isFinite(componentWeights[k])) {
                throw new IllegalArgumentException(
                        "component weights must be finite: component=" + k + ", weight=" + componentWeights[k]);
            }
        }
        this.componentWeights = componentWeights.clone();
    }

    /**
     * One advantage per sequence.
     *
     * @param components {@code [components][sequences]}, finite
     */
    public double[] perSequence(TokenBatch batch, double[][] components) {
        if (components.length != componentWeights.length) {
            throw new IllegalArgumentException("one weight per reward component: weights=" + componentWeights.length
                    + ", components=" + components.length);
        }
        double[] sum = new double[batch.sequenceCount()];
        for (int k = 0; k < components.length; k++) {
            SequenceRewards.requireFinite(batch, "reward component " + k, components[k]);
            double[] normalised = new Grpo(true).perSequence(batch, components[k]);
            for (int s = 0; s < sum.length; s++) {
                sum[s] += componentWeights[k] * normalised[s];
            }
        }
        return Whitening.ofSequences(batch, sum).apply(sum);
    }
}
