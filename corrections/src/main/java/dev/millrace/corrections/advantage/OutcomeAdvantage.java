package dev.millrace.corrections.advantage;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;

/** An advantage estimator for outcome rewards: one reward per sequence in, one advantage per sequence out. */
public interface OutcomeAdvantage extends AdvantageEstimator {

    /**
     * One advantage per sequence, in batch order.
     *
     * @param rewards one finite reward per sequence
     * @throws IllegalArgumentException naming the sequence or group that cannot be answered for
     */
    double[] perSequence(TokenBatch batch, double[] rewards);

    @Override
    default CorrectionUnit unit() {
        return CorrectionUnit.GROUP;
    }

    @Override
    default StageOutcome apply(StageBatch batch) {
        double[] advantages = perSequence(batch.facts().tokens(), batch.rewards());
        return batch.advantage(this, advantages, AdvantageReport.of(this, batch, advantages));
    }
}
