package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * The weights of another method divided by their mean over the batch: {@code w' = w / mean(w)}, so that they have
 * mean 1 and the loss keeps its scale.
 *
 * <p>Self-normalised importance sampling: consistent, with a bias of order 1/n and usually less variance. The mean is
 * taken after truncation. It runs over tokens; over sequences (each by the mean of its tokens) where the other
 * method's unit is the sequence, as in verl {@code rollout_is_batch_normalize}. Weights that are all 0 stay 0.
 */
public final class BatchNormalizedWeights implements WeightMethod {
    private final WeightMethod method;

    public BatchNormalizedWeights(WeightMethod method) {
        this.method = method;
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.BATCH;
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        return normalise(batch, method.unit(), method.compute(batch, ratio, weights), weights);
    }

    /** Divides weights in place, and says what became of their summary; the same one where nothing is left of them. */
    static WeightSummary normalise(TokenBatch batch, CorrectionUnit unit, WeightSummary raw, float[] weights) {
        double mean = unit == CorrectionUnit.SEQUENCE
                ? meanOverSequences(batch, weights)
                : raw.weight().mean();
        if (!(mean > 0)) {
            return raw;
        }
        for (int t = 0; t < weights.length; t++) {
            weights[t] = (float) (weights[t] / mean);
        }
        return new WeightSummary(
                raw.trainedTokens(),
                raw.truncatedTokens(),
                raw.maskedTokens(),
                raw.trainedSequences(),
                raw.changedSequences(),
                new WeightSummary.Range(
                        raw.weight().mean() / mean,
                        raw.weight().min() / mean,
                        raw.weight().max() / mean));
    }

    private static double meanOverSequences(TokenBatch batch, float[] weights) {
        double sum = 0;
        int sequences = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            if (batch.trainedTokens(s) > 0) {
                double sumHere = 0;
                for (int t = batch.start(s); t < batch.end(s); t++) {
                    sumHere += weights[t];
                }
                sum += sumHere / batch.trainedTokens(s);
                sequences++;
            }
        }
        return sequences == 0 ? 0 : sum / sequences;
    }
}
