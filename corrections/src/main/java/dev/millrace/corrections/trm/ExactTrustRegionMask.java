package dev.millrace.corrections.trm;

import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;

/**
 * Trust region mask from stored distributions: a sequence is rejected if {@code max_t KL(behavior || current)} over
 * its trained tokens exceeds {@code maxTokenKl}.
 *
 * <p>With {@link FullDistributions} the accepted sequences satisfy the premise of {@link TrustRegionBounds} at every
 * token they visited. With {@link TopKDistributions} the KL is a lower bound: what is rejected is rejected rightly,
 * what is accepted is not certified.
 *
 * <p>Unit: sequence. The bound is inclusive. Immutable and thread-safe.
 *
 * @param maxTokenKl largest KL at a token, in nats, positive and finite
 */
public record ExactTrustRegionMask(double maxTokenKl) {
    public ExactTrustRegionMask {
        if (!(maxTokenKl > 0.0 && maxTokenKl < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("maxTokenKl must be positive and finite: maxTokenKl=" + maxTokenKl);
        }
    }

    /**
     * Overwrites {@code mask}, one byte per packed token: 1 if trained and its sequence is accepted, else 0.
     *
     * @param stored distributions at every packed token; those at context tokens are not read
     * @throws IllegalArgumentException if an array has another length than the batch, or what is stored at a trained
     *     token is not a distribution, naming sequence and token
     */
    public TrustRegionSummary compute(TokenBatch batch, StoredDistributions stored, byte[] mask) {
        batch.requireLength("distributions", stored.tokens());
        batch.requireLength("mask", mask.length);
        batch.copyMask(0, mask, 0, mask.length);
        TrustRegionSummary.Tally tally = new TrustRegionSummary.Tally(batch.sequenceCount());
        for (int s = 0; s < batch.sequenceCount(); s++) {
            double largest = 0.0;
            double sum = 0.0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double kl = klAt(stored, batch, s, t);
                    largest = Math.max(largest, kl);
                    sum += kl;
                }
            }
            boolean rejected = largest > maxTokenKl;
            if (rejected) {
                Arrays.fill(mask, batch.start(s), batch.end(s), (byte) 0);
            }
            tally.add(batch.trainedTokens(s), largest, sum, rejected);
        }
        return tally.summary();
    }

    private static double klAt(StoredDistributions stored, TokenBatch batch, int sequence, int token) {
        try {
            return stored.klAt(token);
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(
                    e.getMessage() + "; sequence=" + sequence + ", token=" + (token - batch.start(sequence)), e);
        }
    }
}
