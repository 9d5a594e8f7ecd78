package dev.millrace.corrections.objective;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.weights.SignedWeightMethod;

/**
 * What TOPR, ASPO and DISPO share: the policy gradient {@code ℓ = −sg[w] A log π} with {@code w} from the ratio current /
 * behavior and the sign of the advantage. The weights follow the current policy and are constants of the step; weights in
 * the input multiply them.
 */
final class SignedWeights {
    private SignedWeights() {}

    /** The result; acted on are tokens whose weight is not their ratio's. */
    static ObjectiveResult policyGradient(SignedWeightMethod method, ObjectiveInput input, UpdateFacts facts) {
        TokenBatch batch = input.batch();
        float[] behavior = input.requireBehavior("a policy gradient with weights by sign");
        float[] weights = new float[batch.tokenCount()];
        LogRatio ratio = LogRatio.full(input.current(), behavior);
        method.compute(batch, ratio, input.advantages(), weights);
        ActedOn.Tally acted = new ActedOn.Tally();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    acted.add(s, weights[t] != (float) Math.exp(LogRatio.bounded(ratio.at(t))) ? 1 : 0);
                    weights[t] = (float) (weights[t] * input.weight(t));
                } else {
                    weights[t] = 0f;
                }
            }
        }
        ObjectiveResult result =
                new Reinforce().evaluate(input.withProximal(behavior).withWeights(weights), facts);
        return new ObjectiveResult(
                result.loss(), result.gradient(), result.clipFlags(), acted.done(), result.metrics());
    }
}
