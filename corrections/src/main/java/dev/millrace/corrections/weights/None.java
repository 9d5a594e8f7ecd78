package dev.millrace.corrections.weights;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.WeightStage;
import java.util.Map;

/**
 * No importance weights: {@code w_t = 1 for all t}, and nothing is compared.
 *
 * <p>Unit: token. Source: definition.
 */
public record None() implements WeightStage {

    @Override
    public WeightStage comparing(RatioKind ratio) {
        return this;
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch left = batch.left();
        float[] ones = new float[left.tokenCount()];
        for (int t = 0; t < ones.length; t++) {
            ones[t] = left.trained(t);
        }
        return batch.weigh(this, ones, 0, 0, Map.of());
    }
}
