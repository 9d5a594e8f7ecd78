package dev.millrace.corrections.staleness;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.RatioMask;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Arrays;
import java.util.Map;

/**
 * Off-policy sequence masking: rejects a sequence whose advantage is negative and from which the policy has drifted,
 * {@code A < 0 and mean over trained tokens of (log behavior - log current) > threshold}.
 *
 * <p>A wrong answer that the policy no longer gives teaches little, and it pushes probabilities further into a region
 * where they are unreliable. A right answer is kept at any age. The mean is the k1 estimate of KL(behavior || current)
 * per token, so length plays no part; it may be negative. {@code behavior} are the log-probs of the inference engine,
 * not a recomputation: engine mismatch counts as drift.
 *
 * <p>Unit: sequence. Source: DeepSeek-AI, <i>DeepSeek-V3.2</i>, arXiv 2512.02556, section on scaling GRPO, which does
 * not publish the threshold. Their advantage is one number per sequence; here it is given as such.
 *
 * <p>Immutable and thread-safe.
 *
 * @param threshold largest mean log ratio of a negative-advantage sequence, finite, at least 0
 */
public record SequenceMask(double threshold) implements RatioMask {
    public SequenceMask {
        if (!(threshold >= 0.0 && threshold < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("threshold must be finite and not negative: threshold=" + threshold);
        }
    }

    /** A mean of 0.1; the source does not publish its own. */
    public static SequenceMask defaults() {
        return new SequenceMask(0.1);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    /** Compares proximal, which is current where a step starts, with behavior. */
    @Override
    public StageOutcome apply(StageBatch batch) {
        byte[] keep = new byte[batch.left().tokenCount()];
        int negative = compute(batch.left(), batch.facts().ratio(RatioKind.ANCHOR), batch.advantages(), keep);
        Map<String, Double> values = StageSettings.of(this);
        values.put("negative_sequences", (double) negative);
        return batch.mask(this, keep, values);
    }

    /**
     * Overwrites {@code mask}, one byte per packed token: 1 if trained and the sequence is kept, else 0.
     *
     * @param ratio current / behavior, {@link LogRatio#full}
     * @param advantages one per sequence; finite where the sequence has a trained token
     * @return how many sequences have a trained token and a negative advantage
     * @throws IllegalArgumentException if an array has the wrong length or an advantage is not finite
     * @throws NonFiniteLogProbException naming sequence and token
     */
    public int compute(TokenBatch batch, LogRatio ratio, double[] advantages, byte[] mask) {
        ratio.requireFinite(batch);
        batch.requireLength("mask", mask.length);
        if (advantages.length != batch.sequenceCount()) {
            throw new IllegalArgumentException("one advantage per sequence: advantages=" + advantages.length
                    + ", sequences=" + batch.sequenceCount());
        }
        batch.copyMask(0, mask, 0, mask.length);
        int negative = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            int trained = batch.trainedTokens(s);
            if (trained == 0) {
                continue;
            }
            if (!Double.isFinite(advantages[s])) {
                throw new IllegalArgumentException(
                        "an advantage must be finite: sequence=" + s + ", advantage=" + advantages[s]);
            }
            if (advantages[s] < 0.0) {
                negative++;
                if (-sumOfLogRatios(batch, s, ratio) / trained > threshold) {
                    Arrays.fill(mask, batch.start(s), batch.end(s), (byte) 0);
                }
            }
        }
        return negative;
    }

    private static double sumOfLogRatios(TokenBatch batch, int sequence, LogRatio ratio) {
        double sum = 0.0;
        for (int t = batch.start(sequence); t < batch.end(sequence); t++) {
            if (batch.isTrained(t)) {
                sum += ratio.at(t);
            }
        }
        return sum;
    }
}
