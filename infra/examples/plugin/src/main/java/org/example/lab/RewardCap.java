package org.example.lab;

import dev.millrace.api.plugin.Meaning;
import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.stage.RewardStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;

/** No reward is above a cap. */
public record RewardCap(@Meaning("highest reward, finite") double cap) implements RewardStage {

    public RewardCap {
        if (!Double.isFinite(cap)) {
            throw new IllegalArgumentException("cap must be finite: " + cap);
        }
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        double[] shaped = batch.rewards().clone();
        for (int s = 0; s < shaped.length; s++) {
            shaped[s] = Math.min(shaped[s], cap);
        }
        return batch.reward(this, shaped, StageSettings.of(this));
    }
}
