package dev.millrace.policy.weights;

import dev.millrace.policy.decoder.TensorSpec;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.ShortBuffer;
import java.util.List;

/**
 * Named tensors with values of one type: the tensors that a step trains and a version stores. In memory
 * they are always float32; writers must round to the type.
 *
 * <p>As thread-safe as the {@link TensorSet} that holds the memory.
 */
public final class Parameters {
    private static final int BLOCK = 4096;

    private final Dtype dtype;
    private final TensorSet tensors;

    /** @param tensors owned by these parameters; all values must be of the type */
    Parameters(Dtype dtype, TensorSet tensors) {
        this.dtype = dtype;
        this.tensors = tensors;
    }

    /** All zeros, to be filled with {@link #load}. */
    public static Parameters zeros(List<TensorSpec> specs, Dtype dtype) {
        return new Parameters(dtype, new TensorSet(specs));
    }

    /** Names and shapes, in the order of every iteration. */
    public List<TensorSpec> specs() {
        return tensors.specs();
    }

    public Dtype dtype() {
        return dtype;
    }

    /** Returns all tensors as a set, always float32; shares the memory. */
    public TensorSet tensors() {
        return tensors;
    }

    /** A writable view of one tensor, row-major. */
    public FloatBuffer tensor(String name) {
        return tensors.tensor(name);
    }

    /**
     * Returns one tensor's little-endian bytes in its type, for the wire and for digests. Read-only use: a view for
     * float32, otherwise a copy.
     *
     * @throws IllegalStateException if the type cannot represent a value
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
                    throw new IllegalStateException(
                            name + " has " + block[i] + ", which is not a bfloat16; round weights before writing them");
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

    /** Overwrites all tensors with those of parameters of the same names, shapes and type. */
    void copyFrom(Parameters source) {
        if (source.dtype != dtype) {
            throw new IllegalArgumentException("weights of " + source.dtype + " into weights of " + dtype);
        }
        tensors.copyFrom(source.tensors);
    }

    Parameters copy() {
        return new Parameters(dtype, tensors.copy());
    }

    /** Independent parameters of a type, each value rounded to the nearest, ties to even. */
    Parameters as(Dtype type) {
        Parameters rounded = new Parameters(type, tensors.copy());
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
