package dev.millrace.policy.weights;

import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.TensorSpec;
import java.nio.FloatBuffer;
import java.util.SplittableRandom;

/**
 * A low-rank adapter: A and B of every weight that it changes, and its base weights.
 *
 * <p>Decoding, scoring and differentiation use {@code W + scale * (B A)} in float32. Only this class merges it: each
 * element is the sum over the rank in ascending order, then scaled, then added to W. The same adapter and the same W
 * give the same bits everywhere. The merged value is not rounded to W's type: W is a value of that type, so rounding
 * would drop any change below half its last bit.
 */
public final class LoraAdapter {
    private final LoraShape shape;
    private final FrozenWeights base;
    private final Parameters parameters;

    private LoraAdapter(LoraShape shape, FrozenWeights base, Parameters parameters) {
        this.shape = shape;
        this.base = base;
        this.parameters = parameters;
    }

    /** All zeros, of the base's type. */
    public static LoraAdapter zeros(LoraShape shape, FrozenWeights base) {
        return new LoraAdapter(shape, base, Parameters.zeros(shape.tensors(base.shape()), base.dtype()));
    }

    /**
     * Returns an adapter with PEFT's initial values: A uniform between {@code -1/sqrt(in)} and {@code 1/sqrt(in)}
     * (Kaiming's with a = sqrt(5)), B zero, so that it changes nothing. The same seed gives the same bits everywhere.
     */
    public static LoraAdapter initial(LoraShape shape, FrozenWeights base, long seed) {
        LoraAdapter adapter = zeros(shape, base);
        SplittableRandom random = new SplittableRandom(seed);
        for (TensorSpec spec : shape.adapted(base.shape())) {
            SplittableRandom own = random.split();
            double bound = 1 / Math.sqrt(spec.dims().get(1));
            FloatBuffer a = adapter.parameters.tensor(LoraShape.a(spec.name()));
            while (a.hasRemaining()) {
                float value = (float) ((2 * own.nextDouble() - 1) * bound);
                a.put(base.dtype() == Dtype.F32 ? value : Bfloat16.value(Bfloat16.of(value)));
            }
        }
        return adapter;
    }

    public LoraShape shape() {
        return shape;
    }

    public FrozenWeights base() {
        return base;
    }

    /** A and B, under their own names, of the base's type. */
    public Parameters parameters() {
        return parameters;
    }

    /** An independent adapter with the same values and the same base. */
    LoraAdapter copy() {
        return new LoraAdapter(shape, base, parameters.copy());
    }

    void copyFrom(LoraAdapter source) {
        if (!source.shape.equals(shape) || !source.base.sha256().equals(base.sha256())) {
            throw new IllegalArgumentException("an adapter of " + source.shape + " upon " + source.base.sha256()
                    + " into one of " + shape + " upon " + base.sha256());
        }
        parameters.copyFrom(source.parameters);
    }

    /** Overwrites the adapted weights, row by row. */
    public void mergeInto(TensorSet weights) {
        for (TensorSpec spec : shape.adapted(base.shape())) {
            int out = Math.toIntExact(spec.dims().get(0));
            int in = Math.toIntExact(spec.dims().get(1));
            float[][] a = rows(parameters.tensor(LoraShape.a(spec.name())), in);
            FloatBuffer b = parameters.tensor(LoraShape.b(spec.name()));
            FloatBuffer into = weights.tensor(spec.name());
            float[] row = new float[in];
            float[] sum = new float[in];
            for (int o = 0; o < out; o++) {
                base.read(spec.name(), o * in, row, in);
                addRow(b, o, a, shape.scale(), row, sum);
                into.put(row);
            }
        }
    }

    /** Returns a copy of a matrix's rows. */
    public static float[][] rows(FloatBuffer values, int width) {
        float[][] rows = new float[values.remaining() / width][width];
        for (float[] row : rows) {
            values.get(row);
        }
        return rows;
    }

    /**
     * Adds one row of {@code scale * (B A)}. Skips zero rows of B: adding a zero would change a negative zero.
     *
     * @param b {@code [out, rank]}
     * @param a {@code [rank, in]}
     * @param into row of W, of length {@code in}
     */
    public static void addRow(FloatBuffer b, int row, float[][] a, float scale, float[] into, float[] sum) {
        int first = row * a.length;
        boolean isChanged = false;
        for (int k = 0; k < a.length; k++) {
            isChanged |= b.get(first + k) != 0;
        }
        if (isChanged) {
            times(b.get(first), a[0], sum);
            for (int k = 1; k < a.length; k++) {
                addTo(sum, a[k], b.get(first + k));
            }
            addTo(into, sum, scale);
        }
    }

    // Plain loops over arrays: the compiler turns each of them into vector instructions, which change no rounding.

    private static void times(float factor, float[] from, float[] into) {
        for (int i = 0; i < into.length; i++) {
            into[i] = factor * from[i];
        }
    }

    private static void addTo(float[] sum, float[] added, float factor) {
        for (int i = 0; i < sum.length; i++) {
            sum[i] += factor * added[i];
        }
    }
}
