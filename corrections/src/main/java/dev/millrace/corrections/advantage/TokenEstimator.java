package dev.millrace.corrections.advantage;

import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;

/** An estimator with an advantage per token. */
interface TokenEstimator extends AdvantageEstimator {

    /** One per packed token; values at context tokens are ignored. */
    float[] perToken(StageBatch batch);

    /** Returns the least number of trained tokens; with fewer all advantages are 0. */
    default int leastTokens() {
        return 1;
    }

    @Override
    default StageOutcome apply(StageBatch batch) {
        boolean tooFew = batch.facts().tokens().trainedTokens() < leastTokens();
        float[] advantages = tooFew ? new float[batch.facts().tokens().tokenCount()] : perToken(batch);
        return batch.tokenAdvantage(this, advantages, AdvantageReport.ofTokens(this, batch, advantages));
    }
}
