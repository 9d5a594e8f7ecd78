package dev.millrace.replay.retrain;

/**
 * Compares recomputed log-probs with recorded ones, per sequence and policy.
 *
 * @param same equal bit for bit
 * @param largest absolute difference
 * @param computed including those without a recorded counterpart
 */
public record Agreement(long same, long different, double largest, long computed) {
    public static final Agreement NONE = new Agreement(0, 0, 0, 0);

    public Agreement plus(Agreement other) {
        return new Agreement(
                same + other.same,
                different + other.different,
                Math.max(largest, other.largest),
                computed + other.computed);
    }

    static Agreement incomparable() {
        return new Agreement(0, 0, 0, 1);
    }

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
