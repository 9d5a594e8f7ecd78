package dev.millrace.policy.weights;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.decoder.WholeTensor;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * The parameters of one decoder: float32 tensors under their Hugging Face names, in direct little-endian buffers.
 *
 * <p>Their {@link Dtype} is the type of the values and of the bytes on the wire. Weights of a narrower type than
 * float32 hold only values of that type; writers must round. Weights with a {@link LoraAdapter} are its base weights
 * merged with it. Then a step changes the adapter, and only the adapter goes onto the wire ({@link #trained});
 * {@link #merge} updates the weights from it.
 *
 * <p>Sessions read the buffers in place at every call, so a write is a weight swap. One owner may write (the optimizer,
 * or a loader), and only while no session call with these weights is running; nothing here synchronizes. Weights that
 * other threads read are frozen by agreement: publish a {@link #copy()} and continue writing to your own.
 */
public final class Weights {
    private final DecoderShape shape;
    private final Parameters parameters;
    private final @Nullable LoraAdapter adapter;

    private Weights(DecoderShape shape, Parameters parameters, @Nullable LoraAdapter adapter) {
        this.shape = shape;
        this.parameters = parameters;
        this.adapter = adapter;
    }

    /** All zeros of float32, to be filled with {@link #load}. */
    public static Weights zeros(DecoderShape shape) {
        return zeros(shape, Dtype.F32);
    }

    /** All zeros, to be filled with {@link #load}. */
    public static Weights zeros(DecoderShape shape, Dtype dtype) {
        return new Weights(shape, Parameters.zeros(shape.tensors(), dtype), null);
    }

    /** Wraps memory of another owner; all values must be of the type. */
    static Weights in(TensorSet memory, DecoderShape shape, Dtype dtype) {
        if (!memory.specs().equals(shape.tensors())) {
            throw new IllegalArgumentException("the memory is of other tensors: it has "
                    + memory.specs().size() + ", and " + shape + " has "
                    + shape.tensors().size());
        }
        return new Weights(shape, new Parameters(dtype, memory), null);
    }

    /**
     * Returns weights with an adapter that reuse this memory; their values are float32, independent of this type. The
     * caller fills the adapter and then calls {@link #merge}.
     *
     * @param put adapter whose base is exactly these weights
     */
    public Weights with(LoraAdapter put) {
        if (adapter != null || !put.base().shape().equals(shape)) {
            throw new IllegalArgumentException(
                    "the adapter belongs to plain weights of " + put.base().shape() + ", not to these, of " + shape);
        }
        return new Weights(shape, new Parameters(Dtype.F32, parameters.tensors()), put);
    }

    /**
     * Random initial weights: norms 1, biases and a value head 0, matrices normal with variance {@code 1/in};
     * projections back into the residual stream are divided by {@code sqrt(2*layers)}, so that its scale does not grow
     * with depth. Embedding and head have variance {@code 1/hiddenSize}.
     *
     * <p>The same shape and seed give the same bits everywhere, independent of how a matrix is split.
     */
    public static Weights random(DecoderShape shape, long seed) {
        Weights weights = zeros(shape);
        SplittableRandom random = new SplittableRandom(seed);
        double residualScale = 1 / Math.sqrt(2.0 * shape.layers());
        List<Runnable> draws = new ArrayList<>();
        for (WholeTensor whole : shape.wholes()) {
            String name = whole.name();
            if (name.endsWith("norm.weight")) {
                fill(weights, whole, () -> 1f);
            } else if (whole.dims().size() > 1) {
                double in = whole.dims().get(1);
                boolean intoResidual = name.endsWith("o_proj.weight") || name.endsWith("down_proj.weight");
                double deviation = (intoResidual ? residualScale : 1) / Math.sqrt(in);
                SplittableRandom own = random.split();
                draws.add(() -> fill(weights, whole, () -> (float) (normal(own) * deviation)));
            }
        }
        draws.parallelStream().forEach(Runnable::run); // each by its own numbers
        return weights;
    }

    @FunctionalInterface
    private interface Draw {
        float next();
    }

    private static void fill(Weights weights, WholeTensor whole, Draw draw) {
        for (TensorSpec piece : whole.pieces()) {
            FloatBuffer buffer = weights.tensor(piece.name());
            while (buffer.hasRemaining()) {
                buffer.put(draw.next());
            }
        }
    }

    /** Box-Muller on {@link StrictMath}: the platform's own {@code nextGaussian} may differ between Java versions. */
    private static double normal(SplittableRandom random) {
        double radius = StrictMath.sqrt(-2 * StrictMath.log(1 - random.nextDouble()));
        return radius * StrictMath.cos(2 * Math.PI * random.nextDouble());
    }

    public DecoderShape shape() {
        return shape;
    }

    public Dtype dtype() {
        return parameters.dtype();
    }

    /** Returns all tensors as a set, always float32; shares the memory. */
    public TensorSet tensors() {
        return parameters.tensors();
    }

    /** Returns all tensors with the type of their values; shares the memory. */
    public Parameters parameters() {
        return parameters;
    }

    /** Returns the adapter that is merged into these weights; empty for plain weights. */
    public Optional<LoraAdapter> adapter() {
        return Optional.ofNullable(adapter);
    }

    /**
     * Returns the tensors that a step changes and that a version contains: the adapter's, or all. Call {@link #merge}
     * after writing an adapter's.
     */
    public Parameters trained() {
        return adapter == null ? parameters : adapter.parameters();
    }

    /** Merges the current adapter values into the weights; without an adapter does nothing. */
    public void merge() {
        if (adapter != null) {
            adapter.mergeInto(parameters.tensors());
        }
    }

    /** A writable view of one tensor, row-major; see the class for write access. */
    public FloatBuffer tensor(String name) {
        return parameters.tensor(name);
    }

    /** One tensor's little-endian bytes in its type; see {@link Parameters#bytes}. */
    public ByteBuffer bytes(String name) {
        return parameters.bytes(name);
    }

    /** Overwrites one tensor from little-endian bytes of its type. */
    public void load(String name, ByteBuffer littleEndian) {
        parameters.load(name, littleEndian);
    }

    /**
     * Overwrites all tensors with those of weights of the same shape and type, and the adapter with that of the other
     * weights.
     */
    public void copyFrom(Weights source) {
        if ((adapter == null) != (source.adapter == null)) {
            throw new IllegalArgumentException(
                    "weights with an adapter and weights without one are no copies of each other");
        }
        parameters.copyFrom(source.parameters);
        if (adapter != null && source.adapter != null) {
            adapter.copyFrom(source.adapter);
        }
    }

    /** Returns independent weights with the same values; an adapter's base is shared. */
    public Weights copy() {
        return new Weights(shape, parameters.copy(), adapter == null ? null : adapter.copy());
    }

    /**
     * Returns independent weights of a type, each value rounded to the nearest, ties to even; an adapter stays merged
     * into the values and is dropped.
     */
    public Weights as(Dtype type) {
        return new Weights(shape, parameters.as(type), null);
    }
}
