package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;
import java.util.List;

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

    /** @param mask what all {@code passes} left */
    static RejectionTotals of(TokenBatch batch, byte[] mask, List<RejectionPass> passes) {
        int tokens = 0;
        int sequences = 0;
        int trainedSequences = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            int lost = lost(batch, mask, s, passes);
            tokens += lost;
            sequences += lost > 0 ? 1 : 0;
            trainedSequences += batch.trainedTokens(s) > 0 ? 1 : 0;
        }
        return new RejectionTotals(batch.trainedTokens(), tokens, sequences, batch.sequenceCount(), trainedSequences);
    }

    /** The mask is only looked at where several rules have each rejected some of a sequence's tokens. */
    private static int lost(TokenBatch batch, byte[] mask, int sequence, List<RejectionPass> passes) {
        int touching = 0;
        int most = 0;
        for (RejectionPass pass : passes) {
            touching += pass.rejected[sequence] > 0 ? 1 : 0;
            most = Math.max(most, pass.rejected[sequence]);
        }
        if (touching < 2 || most == batch.trainedTokens(sequence)) {
            return most;
        }
        int left = 0;
        for (int t = batch.start(sequence); t < batch.end(sequence); t++) {
            left += mask[t];
        }
        return batch.trainedTokens(sequence) - left;
    }

    void report(Semantics semantics, MetricMap metrics) {
        int counted = semantics.countsSequence(0) ? allSequences : trainedSequences;
        metrics.put("rollout_rs_masked_fraction", tokens / (trained + semantics.countEpsilon()));
        metrics.put("rollout_rs_seq_masked_fraction", sequences / (double) counted);
    }
}
