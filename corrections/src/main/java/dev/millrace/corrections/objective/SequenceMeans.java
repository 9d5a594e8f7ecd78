package dev.millrace.corrections.objective;

import dev.millrace.corrections.TokenBatch;

/** Per sequence, over its trained tokens: mean log ratio, mean advantage, sum of weights; 0 where none is trained. */
final class SequenceMeans {
    private final double[] logRatios;
    private final double[] advantages;
    private final double[] weightSums;

    private SequenceMeans(int sequences) {
        this.logRatios = new double[sequences];
        this.advantages = new double[sequences];
        this.weightSums = new double[sequences];
    }

    static SequenceMeans of(ObjectiveInput input, float[] anchor) {
        TokenBatch batch = input.batch();
        SequenceMeans means = new SequenceMeans(batch.sequenceCount());
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    means.logRatios[s] += (double) input.current()[t] - anchor[t];
                    means.advantages[s] += input.advantages()[t];
                    means.weightSums[s] += input.weight(t);
                }
            }
            int trained = Math.max(1, batch.trainedTokens(s));
            means.logRatios[s] /= trained;
            means.advantages[s] /= trained;
        }
        return means;
    }

    double logRatio(int s) {
        return logRatios[s];
    }

    double advantage(int s) {
        return advantages[s];
    }

    double weightSum(int s) {
        return weightSums[s];
    }
}
