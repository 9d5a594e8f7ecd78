package dev.millrace.corrections.objective;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * What TOPR, ASPO and DISPO share: the policy gradient {@code ℓ = −sg[w] A log π} with {@code w} from the ratio current /
 * behavior and the sign of the advantage, where 0 counts as positive. The weights follow the current policy and are
 * constants of the step; weights in the input multiply them.
 */
final class SignedWeights {
    interface Weight {
        /** @param positive whether the token or answer is to become more likely */
        double of(double logRatio, boolean positive);
    }

    private SignedWeights() {}

    static ObjectiveResult perToken(Weight weight, ObjectiveInput input, UpdateFacts facts) {
        TokenBatch batch = input.batch();
        LogRatio ratio = ratio(input);
        float[] weights = new float[batch.tokenCount()];
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    weights[t] = (float) weight.of(ratio.at(t), input.advantages()[t] >= 0f);
                }
            }
        }
        return policyGradient(ratio, weights, input, facts);
    }

    /** Weighs by the product of a sequence's ratios; its advantages must have one sign. */
    static ObjectiveResult perSequence(String name, Weight weight, ObjectiveInput input, UpdateFacts facts) {
        TokenBatch batch = input.batch();
        LogRatio ratio = ratio(input);
        float[] weights = new float[batch.tokenCount()];
        for (int s = 0; s < batch.sequenceCount(); s++) {
            double sum = 0.0;
            boolean anyPositive = false;
            boolean anyNegative = false;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    sum += ratio.at(t);
                    anyPositive |= input.advantages()[t] > 0f;
                    anyNegative |= input.advantages()[t] < 0f;
                }
            }
            if (anyPositive && anyNegative) {
                throw new IllegalArgumentException(
                        name + " needs advantages of one sign within a sequence: sequence=" + s);
            }
            float own = (float) weight.of(sum, !anyNegative);
            for (int t = batch.start(s); t < batch.end(s); t++) {
                weights[t] = batch.isTrained(t) ? own : 0f;
            }
        }
        return policyGradient(ratio, weights, input, facts);
    }

    private static LogRatio ratio(ObjectiveInput input) {
        return LogRatio.full(input.current(), input.requireBehavior("a policy gradient with weights by sign"));
    }

    /** The result; acted on are tokens whose weight is not their ratio's. */
    private static ObjectiveResult policyGradient(
            LogRatio ratio, float[] weights, ObjectiveInput input, UpdateFacts facts) {
        TokenBatch batch = input.batch();
        ActedOn.Tally acted = new ActedOn.Tally();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    acted.add(s, weights[t] != (float) Math.exp(LogRatio.bounded(ratio.at(t))) ? 1 : 0);
                    weights[t] = (float) (weights[t] * input.weight(t));
                }
            }
        }
        float[] behavior = input.requireBehavior("a policy gradient with weights by sign");
        ObjectiveResult result =
                new Reinforce().evaluate(input.withProximal(behavior).withWeights(weights), facts);
        return new ObjectiveResult(
                result.loss(), result.gradient(), result.clipFlags(), acted.done(), result.metrics());
    }
}
