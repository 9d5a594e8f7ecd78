package dev.millrace.corrections.ratio;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import java.util.Arrays;
import java.util.Map;

/** Masks the sequences that must not be trained on because they lack old log-probs. */
record WithoutOldLogProbs(MissingOldLogProbs policy) implements MaskStage {
    @Override
    public String name() {
        return "missing_old_log_probs";
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch own = batch.facts().tokens();
        boolean[] without = batch.facts().withoutOld();
        byte[] keep = batch.left().mask();
        double sequences = 0;
        double tokens = 0;
        for (int s = 0; s < without.length; s++) {
            if (without[s]) {
                sequences++;
                tokens += own.trainedTokens(s);
                if (policy != MissingOldLogProbs.INTERPOLATE) {
                    Arrays.fill(keep, own.start(s), own.end(s), (byte) 0);
                }
            }
        }
        return batch.mask(this, keep, Map.of("sequences_without", sequences, "tokens_without", tokens));
    }
}
