package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;

/**
 * The advantage under the optimal KL-regularised policy, {@code r − V̂}, {@code V̂ = β log mean_group exp(r / β)}.
 *
 * <p>Unit: sequence, against its group. {@code V̂} is the soft maximum of the group's rewards: their mean as {@code β}
 * grows, their largest as it falls to 0. It estimates the optimal value only if the group was sampled by the policy one
 * regularises towards. A group of one has advantage 0. Computed with the largest reward taken out, so nothing
 * overflows.
 *
 * <p>Source: arXiv 2505.20686 (A*-PO) and arXiv 2602.19362 (OAPL); the target of
 * {@link dev.millrace.corrections.objective.Oapl}.
 *
 * @param beta temperature, positive and finite; larger is nearer to the mean
 */
public record SoftMaximum(double beta) implements OutcomeAdvantage {
    public SoftMaximum {
        if (!(beta > 0 && beta < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("beta must be positive and finite: " + beta);
        }
    }

    /** At a temperature of 0.1. */
    public static SoftMaximum defaults() {
        return new SoftMaximum(0.1);
    }

    @Override
    public double[] perSequence(TokenBatch batch, double[] rewards) {
        batch.requireFinitePerSequence("rewards", rewards);
        double[] largest = new double[batch.groupCount()];
        Arrays.fill(largest, Double.NEGATIVE_INFINITY);
        for (int s = 0; s < rewards.length; s++) {
            largest[batch.group(s)] = Math.max(largest[batch.group(s)], rewards[s]);
        }
        double[] sums = new double[batch.groupCount()];
        int[] sizes = new int[batch.groupCount()];
        for (int s = 0; s < rewards.length; s++) {
            int group = batch.group(s);
            sums[group] += Math.exp((rewards[s] - largest[group]) / beta);
            sizes[group]++;
        }
        double[] advantages = new double[rewards.length];
        for (int s = 0; s < rewards.length; s++) {
            int group = batch.group(s);
            double value = largest[group] + beta * Math.log(sums[group] / sizes[group]);
            advantages[s] = rewards[s] - value;
        }
        return advantages;
    }
}
