package dev.millrace.corrections.filter;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.filter.FilterLevel.Aggregation;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.Objects;
import java.util.OptionalDouble;

/**
 * Masks tokens, or truncates their weights, where a divergence between proximal and behavior policy leaves its
 * bounds: {@code lower <= d <= upper}, both inclusive.
 *
 * <p>Weights are {@code rho} per token; at sequence level under {@link Divergence#RATIO} the geometric mean of the
 * sequence. {@link Action#MASK} takes tokens or sequences outside the bounds out of the mask and leaves weights as
 * they are; {@link Action#TRUNCATE} keeps the mask and moves weights into {@code [lower, upper]}, at sequence level
 * only those of sequences outside the bounds. Ratios are compared as logs. Weights are bounded by the largest float.
 *
 * <p>Unit: token or sequence, by {@link FilterLevel}. Source: AReaL {@code apply_rejection_sampling} and
 * {@code RejectionSamplingConfig}, commit 4aef98d; {@code TRUNCATE} is its {@code clamp}. It replaces a log ratio
 * that is not finite by 0, so that a corrupt token passes as perfectly on-policy; here it is refused. It ignores the
 * aggregation at token level with a warning; here there is none to give.
 *
 * <p>Immutable and thread-safe.
 *
 * @param divergence what is measured
 * @param level on what the verdict falls
 * @param action what happens outside the bounds
 * @param lower lower bound, if any; positive for {@link Divergence#RATIO}
 * @param upper upper bound; above 1 for {@link Divergence#RATIO}, positive for k2 and k3
 */
public record DivergenceFilter(
        Divergence divergence, FilterLevel level, Action action, OptionalDouble lower, double upper) {
    private static final double LOG_LARGEST_FLOAT = Math.log(Float.MAX_VALUE);

    /** What happens to what lies outside the bounds. */
    public enum Action {
        /** Taken out of the mask. */
        MASK,
        /** Kept, with a weight moved to the nearest bound; for {@link Divergence#RATIO} only. */
        TRUNCATE
    }

    public DivergenceFilter {
        Objects.requireNonNull(divergence, "divergence");
        Objects.requireNonNull(level, "level");
        Objects.requireNonNull(action, "action");
        if (!Double.isFinite(upper) || lower.isPresent() && !(lower.getAsDouble() <= upper)) {
            throw new IllegalArgumentException(
                    "bounds must be finite with lower <= upper: lower=" + lower + ", upper=" + upper);
        }
        if (divergence == Divergence.RATIO && !(upper > 1.0)) {
            throw new IllegalArgumentException(
                    "upper must be above 1 for the ratio, or it filters all but identical tokens: upper=" + upper);
        }
        if (divergence == Divergence.RATIO && lower.isPresent() && !(lower.getAsDouble() > 0.0)) {
            throw new IllegalArgumentException("lower must be positive for the ratio: lower=" + lower.getAsDouble());
        }
        if ((divergence == Divergence.K2 || divergence == Divergence.K3) && !(upper > 0.0)) {
            throw new IllegalArgumentException("upper must be positive for " + divergence + ": upper=" + upper);
        }
        if (action == Action.TRUNCATE && divergence != Divergence.RATIO) {
            throw new IllegalArgumentException(
                    "only the ratio is a weight that can be truncated: divergence=" + divergence + "; mask instead");
        }
    }

    /**
     * Overwrites {@code mask} and {@code weights}, one element per packed token: mask 1 if trained and kept; the
     * weight where the mask is 1, else 0.
     *
     * @param ratio proximal / behavior, {@link LogRatio#anchor}
     * @throws IllegalArgumentException if an array has another length than the batch
     * @throws NonFiniteLogProbException naming sequence and token; the results are then overwritten in part
     */
    public FilterSummary compute(TokenBatch batch, LogRatio ratio, byte[] mask, float[] weights) {
        ratio.requireFits(batch);
        batch.requireLength("mask", mask.length);
        batch.requireLength("weights", weights.length);
        int changed = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            changed += level instanceof FilterLevel.Sequence whole
                    ? filterSequence(batch, ratio, s, whole.aggregation(), mask, weights)
                    : filterTokens(batch, ratio, s, mask, weights);
        }
        return new FilterSummary(batch.trainedTokens(), changed);
    }

    private int filterTokens(TokenBatch batch, LogRatio ratio, int sequence, byte[] mask, float[] weights) {
        int changed = 0;
        for (int t = batch.start(sequence); t < batch.end(sequence); t++) {
            mask[t] = 0;
            weights[t] = 0f;
            if (batch.isTrained(t)) {
                double logRatio = ratio.finiteAt(batch, sequence, t);
                boolean outside = isOutside(divergence.at(logRatio));
                changed += outside ? 1 : 0;
                if (action == Action.TRUNCATE || !outside) {
                    mask[t] = 1;
                    weights[t] = weight(outside ? truncated(logRatio) : logRatio);
                }
            }
        }
        return changed;
    }

    private int filterSequence(
            TokenBatch batch, LogRatio ratio, int sequence, Aggregation aggregation, byte[] mask, float[] weights) {
        int trained = batch.trainedTokens(sequence);
        double sumOfLogs = 0.0;
        double sum = 0.0;
        double largest = Double.NEGATIVE_INFINITY;
        for (int t = batch.start(sequence); t < batch.end(sequence); t++) {
            if (batch.isTrained(t)) {
                double logRatio = ratio.finiteAt(batch, sequence, t);
                double measure = divergence.at(logRatio);
                sumOfLogs += logRatio;
                sum += measure;
                largest = Math.max(largest, measure);
            }
        }
        boolean outside = trained > 0
                && isOutside(
                        switch (aggregation) {
                            case SUM -> sum;
                            case MEAN -> sum / trained;
                            case MAX -> largest;
                        });
        boolean kept = action == Action.TRUNCATE || !outside;
        double mean = trained == 0 ? 0.0 : sumOfLogs / trained;
        double shared = outside && action == Action.TRUNCATE ? truncated(mean) : mean;
        for (int t = batch.start(sequence); t < batch.end(sequence); t++) {
            boolean keep = kept && batch.isTrained(t);
            mask[t] = (byte) (keep ? 1 : 0);
            weights[t] = !keep ? 0f : weight(divergence == Divergence.RATIO ? shared : ratio.at(t));
        }
        return outside && (action == Action.MASK || shared != mean) ? trained : 0;
    }

    private boolean isOutside(double measure) {
        return measure > divergence.scaleOf(upper)
                || lower.isPresent() && measure < divergence.scaleOf(lower.getAsDouble());
    }

    private double truncated(double logRatio) {
        double atMost = Math.min(logRatio, Math.log(upper));
        return lower.isPresent() ? Math.max(atMost, Math.log(lower.getAsDouble())) : atMost;
    }

    private static float weight(double logRatio) {
        return (float) Math.exp(Math.min(logRatio, LOG_LARGEST_FLOAT));
    }
}
