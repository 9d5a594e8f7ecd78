package dev.millrace.corrections.m2po;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Set;

/**
 * Reports the mean squared log ratio of proximal to behavior over all remaining tokens, independent of the masks that
 * follow. It only observes. Absent if no token remains.
 *
 * <p>Unit: batch.
 */
public record SecondMomentFigure() implements Stage {

    @Override
    public String name() {
        return "second_moment";
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.BATCH;
    }

    @Override
    public Set<StageInput> inputs() {
        return StageFacts.policies(RatioKind.ANCHOR);
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        if (batch.left().trainedTokens() == 0) {
            return batch.secondMoment(this, OptionalDouble.empty(), Map.of());
        }
        double mean = SecondMomentMask.mean(batch.left(), batch.facts().ratio(RatioKind.ANCHOR));
        return batch.secondMoment(this, OptionalDouble.of(mean), Map.of("mean", mean));
    }
}
