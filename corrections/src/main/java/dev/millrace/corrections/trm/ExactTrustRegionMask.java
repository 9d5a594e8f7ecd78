package dev.millrace.corrections.trm;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;

/**
 * Trust region mask from stored distributions: a sequence is rejected if
 * {@code max_t KL(behavior || current) > maxTokenKl} over its trained tokens, or their mean exceeds {@code meanTokenKl}.
 *
 * <p>Where the distributions are whole ({@link StoredDistributions#isWhole}), the accepted sequences satisfy the premise
 * of {@link TrustRegionBounds} at every token they visited. Elsewhere the KL is a lower bound: what is rejected is
 * rejected rightly, what is accepted is not certified.
 *
 * <p>The default bound finds broken sequences; it certifies nothing. A certificate takes one like the paper's 1e-4: at
 * 0.05 and more than six tokens, the Pinsker bound alone is above 1, the largest possible improvement.
 *
 * <p>Unit: sequence. The bounds are inclusive. Source: arXiv 2512.23075. Immutable and thread-safe.
 *
 * @param maxTokenKl largest KL of a token, in nats, finite; 0 for none
 * @param meanTokenKl largest mean KL of a sequence's tokens, in nats, finite; 0 for none
 */
public record ExactTrustRegionMask(double maxTokenKl, double meanTokenKl) implements MaskStage {
    public ExactTrustRegionMask {
        SampledTrustRegionMask.requireBound("max_token_kl", maxTokenKl);
        SampledTrustRegionMask.requireBound("mean_token_kl", meanTokenKl);
        if (maxTokenKl == 0 && meanTokenKl == 0) {
            throw new IllegalArgumentException(
                    "max_token_kl or mean_token_kl must be above 0: a trust region needs a bound, and both are 0");
        }
    }

    /** A KL of 0.05 nats at a token, without a bound on the mean. */
    public static ExactTrustRegionMask defaults() {
        return new ExactTrustRegionMask(0.05, 0);
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
     * KL measured there instead of the configured bound. {@code certified} is 1 if the distributions are whole at every
     * kept token. {@code certificate} is {@link #surrogate} minus the smallest bound: above 0, proximal is better than
     * behavior on rewards in [0, 1]. It is absent without the two policies' log-probs, or for other rewards.
     */
    @Override
    public StageOutcome apply(StageBatch batch) {
        StoredDistributions stored = batch.facts().distributions();
        byte[] keep = new byte[batch.left().tokenCount()];
        TrustRegionSummary summary = compute(batch.left(), stored, keep);
        Map<String, Double> values = StageSettings.of(this);
        values.put("mask_rate", summary.maskRate());
        if (summary.trainedTokens() > 0) {
            values.put("largest_token_kl", summary.largestTokenDivergence());
            values.put("mean_sequence_kl", summary.meanSequenceDivergence());
        }
        TokenBatch kept = batch.left().withMask(keep);
        boolean certified = isWhole(stored, kept);
        values.put("certified", certified ? 1.0 : 0.0);
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
            if (certified && isComparable(batch)) {
                double surrogate = surrogate(batch, kept);
                values.put("surrogate", surrogate);
                values.put(
                        "certificate",
                        surrogate
                                - TrustRegionBounds.smallest(
                                        values.get("bound_trpo"),
                                        values.get("bound_pinsker"),
                                        values.get("bound_mixed")));
            }
        }
        values.values().removeIf(value -> !Double.isFinite(value)); // a KL is infinite where a token was ruled out
        return batch.mask(this, keep, values);
    }

    private static boolean isWhole(StoredDistributions stored, TokenBatch kept) {
        boolean whole = true;
        for (int s = 0; s < kept.sequenceCount(); s++) {
            for (int t = kept.start(s); t < kept.end(s); t++) {
                whole &= !kept.isTrained(t) || stored.isWhole(t);
            }
        }
        return whole;
    }

    private static boolean isComparable(StageBatch batch) {
        return batch.facts().has(StageInput.BEHAVIOR)
                && batch.facts().has(StageInput.PROXIMAL)
                && Arrays.stream(batch.rewards()).allMatch(reward -> reward >= 0 && reward <= 1);
    }

    /**
     * {@code 1/N Σ_s M_s (r_s − mean r of its group) Σ_t (rho_t − 1)} over the N sequences that reached the mask.
     *
     * <p>The paper sums rho_t. The difference is a constant of the sampler, 0 in expectation over sequences of one length;
     * rho_t − 1 also makes tokens after the end of a short sequence count 0, and an unchanged policy's surrogate 0.
     */
    private static double surrogate(StageBatch batch, TokenBatch kept) {
        LogRatio ratio = batch.facts().ratio(RatioKind.ANCHOR);
        double[] rewards = batch.rewards();
        double[] sums = new double[kept.groupCount()];
        int[] sizes = new int[sums.length];
        int sequences = 0;
        for (int s = 0; s < rewards.length; s++) {
            sums[kept.group(s)] += rewards[s];
            sizes[kept.group(s)]++;
            sequences += batch.left().trainedTokens(s) > 0 ? 1 : 0;
        }
        double surrogate = 0;
        for (int s = 0; s < rewards.length; s++) {
            double advantage = rewards[s] - sums[kept.group(s)] / sizes[kept.group(s)];
            for (int t = kept.start(s); t < kept.end(s); t++) {
                if (kept.isTrained(t)) {
                    surrogate += advantage * Math.expm1(LogRatio.bounded(ratio.finiteAt(kept, s, t)));
                }
            }
        }
        return surrogate / sequences;
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
            int trained = batch.trainedTokens(s);
            boolean rejected = largest > SampledTrustRegionMask.orNone(maxTokenKl)
                    || trained > 0 && sum / trained > SampledTrustRegionMask.orNone(meanTokenKl);
            if (rejected) {
                Arrays.fill(mask, batch.start(s), batch.end(s), (byte) 0);
            }
            tally.add(trained, largest, sum, rejected);
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
