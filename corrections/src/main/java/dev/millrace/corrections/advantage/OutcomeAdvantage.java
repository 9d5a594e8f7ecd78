package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;

/** An advantage estimator for outcome rewards: one reward per sequence in, one advantage per sequence out. */
public interface OutcomeAdvantage {

    /**
     * One advantage per sequence, in batch order.
     *
     * @param batch layout and groups
     * @param rewards one finite reward per sequence
     * @throws IllegalArgumentException naming the sequence or group that cannot be answered for
     */
    double[] perSequence(TokenBatch batch, double[] rewards);
}
