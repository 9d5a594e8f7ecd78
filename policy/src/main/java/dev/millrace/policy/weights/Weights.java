package dev.millrace.policy.weights;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.ShortBuffer;
import java.util.SplittableRandom;

/**
 * The parameters of one decoder: float32 tensors under their Hugging Face names, in direct little-endian buffers.
 *
 * <p>Their {@link Dtype} says which values they are and what goes onto the wire. Weights of a narrower type than float32 hold nothing but
 * values of it; whoever writes them rounds.
 *
 * <p>Sessions read the buffers in place at every call, so a write is a weight swap. One owner may write (the optimiser,
 * or a loader), and only while no session call with these weights is running; nothing here synchronises. Weights that other
 * threads read are frozen by agreement: publish a {@link #copy()} and go on writing to your own.
 */
public final class Weights {
    private static final int BLOCK = 4096;

    private final DecoderShape shape;
    private final Dtype dtype;
    private final TensorSet tensors;

    private Weights(DecoderShape shape, Dtype dtype, TensorSet tensors) {
        this.shape = shape;
        this.dtype = dtype;
        this.tensors = tensors;
    }

    /** All zeros of float32, to be filled with {@link #load}. */
    public static Weights zeros(DecoderShape shape) {
        return zeros(shape, Dtype.F32);
    }

    /** All zeros, to be filled with {@link #load}. */
    public static Weights zeros(DecoderShape shape, Dtype dtype) {
        return new Weights(shape, dtype, new TensorSet(shape.tensors()));
    }

    /**
     * Fresh weights for training from nothing: norms 1, biases 0, matrices normal with variance {@code 1/in}; projections
     * back into the residual stream are divided by {@code sqrt(2*layers)}, so that its scale does not grow with depth.
     * Embedding and head have variance {@code 1/hiddenSize}.
     *
     * <p>The same shape and seed give the same bits everywhere.
     */
    public static Weights random(DecoderShape shape, long seed) {
        Weights weights = zeros(shape);
        SplittableRandom random = new SplittableRandom(seed);
        double residualScale = 1 / Math.sqrt(2.0 * shape.layers());
        for (TensorSpec spec : shape.tensors()) {
            String name = spec.name();
            FloatBuffer buffer = weights.tensor(name);
            if (name.endsWith("norm.weight")) {
                while (buffer.hasRemaining()) {
                    buffer.put(1f);
                }
            } else if (!name.endsWith(".bias")) {
                double in = spec.dims().get(1);
                boolean intoResidual = name.endsWith("o_proj.weight") || name.endsWith("down_proj.weight");
                double deviation = (intoResidual ? residualScale : 1) / Math.sqrt(in);
                SplittableRandom own = random.split();
                while (buffer.hasRemaining()) {
                    buffer.put((float) (normal(own) * deviation));
                }
            }
        }
        return weights;
    }

    /** Box-Muller on {@link StrictMath}: the platform's own {@code nextGaussian} may differ between Java versions. */
    private static double normal(SplittableRandom random) {
        double radius = StrictMath.sqrt(-2 * StrictMath.log(1 - random.nextDouble()));
        return radius * StrictMath.cos(2 * Math.PI * random.nextDouble());
    }

    public DecoderShape shape() {
        return shape;
    }

    /** What the values are. */
    public Dtype dtype() {
        return dtype;
    }

    /** All tensors as a set, float32 whatever the values are; shares the memory. */
    public TensorSet tensors() {
        return tensors;
    }

    /** A writable view of one tensor, row-major; see the class for who may write. */
    public FloatBuffer tensor(String name) {
        return tensors.tensor(name);
    }

    /**
     * One tensor's little-endian bytes in its type: what goes onto the wire and into a digest. Not to be written; of float32 a
     * view, otherwise in memory of its own.
     *
     * @throws IllegalStateException if a value is none of the type
     */
    public ByteBuffer bytes(String name) {
        return dtype == Dtype.F32 ? tensors.bytes(name) : narrowed(name, tensor(name));
    }

    private static ByteBuffer narrowed(String name, FloatBuffer values) {
        ByteBuffer bytes = ByteBuffer.allocate(values.remaining() * Short.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        float[] block = new float[BLOCK];
        short[] narrow = new short[BLOCK];
        ShortBuffer into = bytes.asShortBuffer();
        while (values.hasRemaining()) {
            int count = Math.min(BLOCK, values.remaining());
            values.get(block, 0, count);
            for (int i = 0; i < count; i++) {
                if (!Bfloat16.holds(block[i])) {
                    throw new IllegalStateException(name + " has " + block[i]
                            + ", which is no bfloat16; whoever writes weights must round them");
                }
                narrow[i] = Bfloat16.of(block[i]);
            }
            into.put(narrow, 0, count);
        }
        return bytes;
    }

    /** Overwrites one tensor from little-endian bytes of its type. */
    public void load(String name, ByteBuffer littleEndian) {
        if (dtype == Dtype.F32) {
            tensors.load(name, littleEndian);
        } else {
            widen(name, littleEndian, tensor(name));
        }
    }

    private static void widen(String name, ByteBuffer source, FloatBuffer into) {
        if (source.remaining() != into.remaining() * Short.BYTES) {
            throw new IllegalArgumentException(
                    name + " takes " + into.remaining() * Short.BYTES + " bytes, not " + source.remaining());
        }
        ShortBuffer from = source.duplicate().order(ByteOrder.LITTLE_ENDIAN).asShortBuffer();
        float[] block = new float[BLOCK];
        short[] narrow = new short[BLOCK];
        while (from.hasRemaining()) {
            int count = Math.min(BLOCK, from.remaining());
            from.get(narrow, 0, count);
            for (int i = 0; i < count; i++) {
                block[i] = Bfloat16.value(narrow[i]);
            }
            into.put(block, 0, count);
        }
        source.position(source.limit());
    }

    /** Overwrites all tensors with those of weights of the same shape and type. */
    public void copyFrom(Weights source) {
        if (source.dtype != dtype) {
            throw new IllegalArgumentException("weights of " + source.dtype + " into weights of " + dtype);
        }
        tensors.copyFrom(source.tensors);
    }

    /** Independent weights with the same values. */
    public Weights copy() {
        return new Weights(shape, dtype, tensors.copy());
    }

    /** Independent weights of a type, each value the nearest of it, ties to even. */
    public Weights as(Dtype type) {
        Weights rounded = new Weights(shape, type, tensors.copy());
        if (type == Dtype.BF16 && dtype != Dtype.BF16) {
            for (TensorSpec spec : tensors.specs()) {
                FloatBuffer values = rounded.tensor(spec.name());
                for (int i = 0; i < values.limit(); i++) {
                    values.put(i, Bfloat16.value(Bfloat16.of(values.get(i))));
                }
            }
        }
        return rounded;
    }
}
