package org.example.lab;

import dev.millrace.api.plugin.Meaning;
import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Arrays;

/** Takes the last tokens of every response out of the update. */
public record LastTokens(@Meaning("tokens of a response that are masked, at least 1") int count) implements MaskStage {

    public LastTokens {
        if (count < 1) {
            throw new IllegalArgumentException("count must be at least 1: " + count);
        }
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch layout = batch.left();
        byte[] keep = new byte[layout.tokenCount()];
        Arrays.fill(keep, (byte) 1);
        for (int s = 0; s < layout.sequenceCount(); s++) {
            int left = count;
            for (int t = layout.end(s) - 1; t >= layout.start(s) && left > 0; t--, left--) {
                keep[t] = 0;
            }
        }
        return batch.mask(this, keep, StageSettings.of(this));
    }
}
