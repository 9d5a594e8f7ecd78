package org.example.lab;

import dev.millrace.api.plugin.Meaning;
import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.objective.ActedOn;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.ObjectiveInput;
import dev.millrace.corrections.objective.ObjectiveResult;
import dev.millrace.corrections.objective.UpdateFacts;
import java.util.Map;

/** The policy gradient times a constant: per token {@code -scale w A log p}. */
public record ScaledReinforce(@Meaning("what the loss is multiplied by, above 0") double scale) implements Objective {

    public ScaledReinforce {
        if (!(scale > 0 && scale < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("scale must be finite and above 0: " + scale);
        }
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public boolean linear() {
        return true;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        TokenBatch batch = input.batch();
        double[] coefficients = facts.coefficients(batch);
        float[] gradient = new float[batch.tokenCount()];
        double loss = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double derivative = -scale * coefficients[s] * input.weight(t) * input.advantages()[t];
                    gradient[t] = (float) derivative;
                    loss += derivative * input.current()[t];
                }
            }
        }
        return new ObjectiveResult(
                loss, gradient, new byte[batch.tokenCount()], new ActedOn(0, 0), Map.of("lab/scale", scale));
    }
}
