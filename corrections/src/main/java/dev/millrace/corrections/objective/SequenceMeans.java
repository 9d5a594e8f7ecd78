package dev.millrace.corrections.objective;

import dev.millrace.corrections.TokenBatch;

/** Per sequence, over its trained tokens: mean log ratio, mean advantage, sum of weights; 0 where none is trained. */
record SequenceMeans(double[] logRatios, double[] advantages, double[] weightSums) {

    static SequenceMeans of(ObjectiveInput input, float[] anchor) {
        TokenBatch batch = input.batch();
        int sequences = batch.sequenceCount();
        SequenceMeans means = new SequenceMeans(new double[sequences], new double[sequences], new double[sequences]);
        for (int s = 0; s < sequences; s++) {
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
}
