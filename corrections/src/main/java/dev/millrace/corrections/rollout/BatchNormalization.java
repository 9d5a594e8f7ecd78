package dev.millrace.corrections.rollout;

/** Divides the weights of a batch by their mean, so that the loss keeps its scale whatever the mismatch. */
final class BatchNormalization {
    private BatchNormalization() {}

    /**
     * Normalises in place.
     *
     * @return what was divided by: the mean over tokens, or over sequences for sequence weights; 1 if there is
     *     nothing to divide by, see {@link Semantics}
     */
    static double normalize(WeightPass pass, Semantics semantics) {
        double mean = pass.normalisationMean(semantics);
        if (!(mean > semantics.leastNormalizingMean())) {
            return 1.0;
        }
        float[] weights = pass.weights;
        for (int t = 0; t < weights.length; t++) {
            weights[t] = (float) (weights[t] / mean);
        }
        return mean;
    }
}
