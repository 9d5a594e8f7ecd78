package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;

/**
 * REINFORCE++ with a group baseline: {@code r − mean} of its group, then whitened over all trained tokens of the batch.
 *
 * <p>Unit: sequence, against its group, on the scale of the batch: unlike GRPO's division by the group's deviation, a
 * group that hardly differs stays quiet. A group of one keeps its reward. Whitening subtracts a token-weighted mean, so
 * advantages depend on lengths. At least 2 trained tokens are needed.
 *
 * <p>Source: Hu et al. 2025 (arXiv 2501.03262).
 */
public record ReinforcePlusPlusBaseline() implements OutcomeAdvantage {

    /** A batch of fewer than two trained tokens has no variance, and teaches nothing. */
    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch tokens = batch.facts().tokens();
        double[] advantages = tokens.trainedTokens() < Whitening.LEAST_TOKENS
                ? new double[tokens.sequenceCount()]
                : perSequence(tokens, batch.rewards());
        return batch.advantage(this, advantages, AdvantageReport.of(this, batch, advantages));
    }

    @Override
    public double[] perSequence(TokenBatch batch, double[] rewards) {
        double[] centred = new Grpo(false).perSequence(batch, rewards);
        return Whitening.ofSequences(batch, centred).apply(centred);
    }
}
