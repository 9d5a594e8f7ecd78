package dev.millrace.corrections.trm;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;

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
 * @param maxTokenKl largest KL of a token, in nats, positive, finite
 */
public record ExactTrustRegionMask(double maxTokenKl) implements MaskStage {
    public ExactTrustRegionMask {
        if (!(maxTokenKl > 0.0 && maxTokenKl < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("max_token_kl must be positive and finite: " + maxTokenKl);
        }
    }

    /** A KL of 0.05 nats at a token. */
    public static ExactTrustRegionMask defaults() {
        return new ExactTrustRegionMask(0.05);
    }

    @Override
    public String name() {
        return "trust_region";
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public Set<StageInput> inputs() {
        return Set.of(StageInput.DISTRIBUTIONS);
    }

    /**
     * Compares behavior with proximal. The bounds on the surrogate's error are for the kept tokens and use the largest
     * KL measured there instead of the configured bound. {@code certified} is 0 where top-k distributions give only a
     * lower bound of it.
     */
    @Override
    public StageOutcome apply(StageBatch batch) {
        StoredDistributions stored = batch.facts().distributions();
        byte[] keep = new byte[batch.left().tokenCount()];
        TrustRegionSummary summary = compute(batch.left(), stored, keep);
        Map<String, Double> values = StageSettings.of(this);
        values.put("mask_rate", summary.maskRate());
        values.put("certified", stored instanceof FullDistributions ? 1.0 : 0.0);
        if (summary.trainedTokens() > 0) {
            values.put("largest_token_kl", summary.largestTokenDivergence());
            values.put("mean_sequence_kl", summary.meanSequenceDivergence());
        }
        TokenBatch kept = batch.left().withMask(keep);
        if (kept.trainedTokens() > 0) {
            TrustRegionSummary within = compute(kept, stored, new byte[keep.length]);
            int length = 0;
            for (int s = 0; s < kept.sequenceCount(); s++) {
                length = Math.max(length, kept.trainedTokens(s));
            }
            double delta = within.largestTokenDivergence();
            values.put("bound_trpo", TrustRegionBounds.trpo(length, delta));
            values.put("bound_pinsker", TrustRegionBounds.pinskerMarginal(length, delta));
            values.put("bound_mixed", TrustRegionBounds.mixed(length, delta, within.meanSequenceDivergence()));
        }
        values.values().removeIf(value -> !Double.isFinite(value)); // a KL is infinite where a token was ruled out
        return batch.mask(this, keep, values);
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
