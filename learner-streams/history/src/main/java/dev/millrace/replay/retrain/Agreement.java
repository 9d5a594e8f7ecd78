package dev.millrace.replay.retrain;

/**
 * Compares log-probs recomputed under the recorded versions with the recorded ones.
 *
 * @param same vectors, each of one sequence and policy, that are the same bit for bit
 * @param different vectors that are not
 * @param largest absolute difference between two of their log-probs
 * @param computed all recomputed vectors, comparable or not
 */
public record Agreement(long same, long different, double largest, long computed) {
    public static final Agreement NONE = new Agreement(0, 0, 0, 0);

    /** Both together. */
    public Agreement plus(Agreement other) {
        return new Agreement(
                same + other.same,
                different + other.different,
                Math.max(largest, other.largest),
                computed + other.computed);
    }

    /** One vector that there is nothing to compare with. */
    static Agreement incomparable() {
        return new Agreement(0, 0, 0, 1);
    }

    /** Of a stretch of two arrays. */
    static Agreement of(float[] recorded, float[] computed, int from, int to) {
        boolean same = true;
        double largest = 0;
        for (int t = from; t < to; t++) {
            if (Float.floatToRawIntBits(recorded[t]) != Float.floatToRawIntBits(computed[t])) {
                same = false;
                largest = Math.max(largest, Math.abs((double) recorded[t] - computed[t]));
            }
        }
        return new Agreement(same ? 1 : 0, same ? 0 : 1, largest, 1);
    }
}
