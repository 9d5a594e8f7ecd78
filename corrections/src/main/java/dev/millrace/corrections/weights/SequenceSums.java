package dev.millrace.corrections.weights;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/** What the methods with one weight per sequence share: the sum of log ratios, and the way back to tokens. */
final class SequenceSums {
    private SequenceSums() {}

    /** Sum of the log ratios of the trained tokens of {@code sequence}, unbounded; 0 without any. */
    static double logRatio(TokenBatch batch, LogRatio ratio, int sequence) {
        double sum = 0.0; // double: thousands of float terms would lose the small ones
        for (int t = batch.start(sequence); t < batch.end(sequence); t++) {
            if (batch.isTrained(t)) {
                sum += ratio.finiteAt(batch, sequence, t);
            }
        }
        return sum;
    }

    /** Writes {@code weight} to the trained tokens of {@code sequence}, 0 to its context. */
    static void spread(TokenBatch batch, int sequence, float weight, float[] weights) {
        for (int t = batch.start(sequence); t < batch.end(sequence); t++) {
            weights[t] = batch.isTrained(t) ? weight : 0f;
        }
    }
}
