package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;

/**
 * What all rules together rejected.
 *
 * @param trained trained tokens before
 * @param tokens of them, how many are rejected
 * @param sequences sequences that lost at least one
 * @param allSequences sequences of the batch, without a trained token included
 * @param trainedSequences sequences that had a trained token
 */
record RejectionTotals(int trained, int tokens, int sequences, int allSequences, int trainedSequences) {

    static RejectionTotals of(TokenBatch batch, byte[] mask) {
        int tokens = 0;
        int sequences = 0;
        int trainedSequences = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            int left = 0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                left += mask[t];
            }
            int lost = batch.trainedTokens(s) - left;
            tokens += lost;
            sequences += lost > 0 ? 1 : 0;
            trainedSequences += batch.trainedTokens(s) > 0 ? 1 : 0;
        }
        return new RejectionTotals(batch.trainedTokens(), tokens, sequences, batch.sequenceCount(), trainedSequences);
    }

    void report(Semantics semantics, MetricMap metrics) {
        int counted = semantics.countsSequence(0) ? allSequences : trainedSequences;
        metrics.put("rollout_rs_masked_fraction", tokens / (trained + semantics.countEpsilon()));
        metrics.put("rollout_rs_seq_masked_fraction", sequences / (double) counted);
    }
}
