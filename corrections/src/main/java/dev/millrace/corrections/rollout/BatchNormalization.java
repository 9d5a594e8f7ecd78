package dev.millrace.corrections.rollout;

/** Divides the weights of a batch by their mean, so that the loss keeps its scale whatever the mismatch. */
final class BatchNormalization {
    /** A mean at or below this is not divided by. */
    private static final double LEAST_MEAN = 1e-8;

    private BatchNormalization() {
    }

    /**
     * Normalises in place.
     *
     * @return what was divided by: the mean over tokens, or over sequences for sequence weights; 1 if that is next to 0
     */
    static double normalize(WeightPass pass, Semantics semantics) {
        double mean = pass.normalisationMean(semantics);
        if (!(mean > LEAST_MEAN)) {
            return 1.0;
        }
        float[] weights = pass.weights;
        for (int t = 0; t < weights.length; t++) {
            weights[t] = (float) (weights[t] / mean);
        }
        return mean;
    }
}
