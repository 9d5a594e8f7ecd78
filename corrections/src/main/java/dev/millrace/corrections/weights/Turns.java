package dev.millrace.corrections.weights;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.Arrays;

/** Runs of trained tokens, and the walk over them that both turn weights take. */
final class Turns {
    /** The log weight of a turn, before the cap. */
    interface LogWeight {
        double of(double logProduct, int tokens);
    }

    private Turns() {}

    static WeightSummary weigh(TokenBatch batch, LogRatio ratio, float[] weights, double logCap, LogWeight logWeight) {
        ratio.requireFits(batch);
        batch.requireLength("weights", weights.length);
        WeightTally tally = new WeightTally();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            tally.nextSequence();
            int t = batch.start(s);
            while (t < batch.end(s)) {
                if (!batch.isTrained(t)) {
                    weights[t++] = 0f;
                    continue;
                }
                int from = t;
                double logProduct = 0.0;
                while (t < batch.end(s) && batch.isTrained(t)) {
                    logProduct += ratio.finiteAt(batch, s, t++);
                }
                double weight = tally.capped(logWeight.of(logProduct, t - from), logCap, t - from);
                Arrays.fill(weights, from, t, (float) weight);
            }
        }
        return tally.summary();
    }
}
