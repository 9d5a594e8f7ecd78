package dev.millrace.learner.step;

import dev.millrace.corrections.vcpo.OffPolicyOptimalBaseline.Scope;
import dev.millrace.corrections.vcpo.WeightedAverage;

/** What a sequence's reward is held against. */
public sealed interface BaselineConfig {

    /** The group's mean: the advantages that the corrections decided. */
    record Group() implements BaselineConfig {}

    /**
     * OPOB (VCPO): the baseline of least variance off policy, by the norm of each sequence's gradient at the step's starting
     * weights. It costs a gradient of every sequence for itself.
     *
     * @param scope            over which sequences a baseline is taken
     * @param average          how it is taken
     * @param weights          the importance weights in it
     * @param lengthNormalized whether a gradient's norm is divided by the sequence's trained length
     * @param divideByStd      whether advantages are divided by the standard deviation of the rewards in scope
     */
    record Opob(Scope scope, WeightedAverage average, Weights weights, boolean lengthNormalized, boolean divideByStd)
            implements BaselineConfig {

        /** The importance weights in the baseline. */
        public enum Weights {
            /** As they are: what the baseline is optimal for. */
            RAW,
            /** Truncated where the update's are. */
            TRUNCATED,
            /** None: the on-policy baseline. */
            NONE
        }

        public static Opob defaults() {
            return new Opob(Scope.GROUP, WeightedAverage.MEAN, Weights.RAW, false, false);
        }
    }

    /**
     * The value of the KL-regularised optimum, {@code β log mean exp(reward / β)} over the group: what OAPL regresses on.
     *
     * @param beta temperature; larger is nearer to the mean, smaller to the best
     */
    record SoftMaximum(double beta) implements BaselineConfig {
        public SoftMaximum {
            if (!(beta > 0 && beta < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("beta must be above 0 and finite: " + beta);
            }
        }

        public static SoftMaximum defaults() {
            return new SoftMaximum(0.1);
        }
    }
}
