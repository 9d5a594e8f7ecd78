package dev.millrace.generator.sampling;

/**
 * Random numbers by position instead of by order: draw {@code i} of a stream is a hash of the stream and of {@code i}.
 *
 * <p>A sequence that is set back, moved to another slot or generated again after a crash gets the same draws at the
 * same positions, with nothing to save or restore. The hash is the finaliser of SplitMix64 (Steele, Lea and Flood,
 * 2014) over a counter with the golden-ratio increment, whose outputs are independent for all that sampling needs.
 */
public final class CounterBasedRandom {
    private static final long GOLDEN_GAMMA = 0x9E3779B97F4A7C15L;

    private CounterBasedRandom() {}

    /** A stream of its own for two coordinates under a seed; sample {@code b} of group {@code a}, say. */
    public static long stream(long seed, long a, long b) {
        return mix(mix(mix(seed + GOLDEN_GAMMA) + a + GOLDEN_GAMMA) + b + GOLDEN_GAMMA);
    }

    /** Draw {@code position} of the stream, uniform over [0, 1) in steps of 2^-24, so that it is an exact float. */
    public static float uniform(long stream, int position) {
        return (bits(stream, position) >>> 40) * 0x1p-24f;
    }

    /** Draw {@code position} of the stream, uniform over 0 to {@code bound - 1}. */
    public static int below(long stream, int position, int bound) {
        if (bound < 1) {
            throw new IllegalArgumentException("a draw needs at least one possible value: bound=" + bound);
        }
        return (int) (((bits(stream, position) >>> 32) * bound) >>> 32);
    }

    /** The numbers below {@code size} in an order of the stream's own, each equally likely. */
    public static int[] permutation(long stream, int size) {
        int[] order = new int[size];
        for (int i = 0; i < size; i++) { // Fisher and Yates, from the inside out
            int other = below(stream, i, i + 1);
            order[i] = order[other];
            order[other] = i;
        }
        return order;
    }

    private static long bits(long stream, int position) {
        return mix(stream + (position + 1L) * GOLDEN_GAMMA);
    }

    private static long mix(long value) {
        long z = value;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}
