package dev.millrace.corrections.advantage;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;

/**
 * The reward against the mean of the whole batch, {@code r − mean}, neither divided nor whitened: FlashREINFORCE's advantage,
 * for one rollout per prompt.
 *
 * <p>Without a group there is nothing else to compare with, so even the best answers to a hard prompt are pushed down.
 * Every sequence counts once, regardless of its length. Unit: sequence, against the batch. Source: the descriptions of
 * OpenRLHF pull requests 1339 and 1340.
 */
public record BatchMean() implements OutcomeAdvantage {

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.BATCH;
    }

    @Override
    public double[] perSequence(TokenBatch batch, double[] rewards) {
        batch.requireFinitePerSequence("rewards", rewards);
        double sum = 0;
        for (double reward : rewards) {
            sum += reward;
        }
        double[] advantages = new double[rewards.length];
        for (int s = 0; s < rewards.length; s++) {
            advantages[s] = rewards[s] - sum / rewards.length;
        }
        return advantages;
    }
}
