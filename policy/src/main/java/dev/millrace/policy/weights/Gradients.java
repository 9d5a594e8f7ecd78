package dev.millrace.policy.weights;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import java.nio.FloatBuffer;
import java.util.List;

/**
 * One float per parameter that is trained, all of a decoder's or an adapter's: the sum of contributions of gradient
 * sessions.
 *
 * <p>In direct buffers that the engine adds to in place, or on the device that computed them. One owner, no
 * synchronization.
 */
public final class Gradients {
    private static final int CHUNK = 4096;

    private final TensorSet tensors;
    private long zeroAt;

    /** All zeros, of all of a decoder's parameters. */
    public Gradients(DecoderShape shape) {
        this(shape.tensors());
    }

    /** All zeros. */
    public Gradients(List<TensorSpec> specs) {
        this.tensors = new TensorSet(specs);
        this.zeroAt = tensors.writes();
    }

    /** Names and shapes, in the order of every iteration. */
    public List<TensorSpec> specs() {
        return tensors.specs();
    }

    /** A live view of one tensor, row-major: writes change the gradient. */
    public FloatBuffer tensor(String name) {
        return tensors.tensor(name);
    }

    /** A copy of one tensor, row-major. */
    public float[] values(String name) {
        FloatBuffer tensor = tensor(name);
        float[] values = new float[tensor.remaining()];
        tensor.get(values);
        return values;
    }

    /** All tensors as a set; shares the memory. */
    public TensorSet tensors() {
        return tensors;
    }

    public void zero() {
        tensors.clear();
        zeroAt = tensors.writes();
    }

    /** Returns whether it was never written since it was zeroed. */
    public boolean isZero() {
        return tensors.writes() == zeroAt;
    }

    public void scale(float factor) {
        if (tensors.newer().isPresent()) {
            tensors.newer().get().scale(factor);
            return;
        }
        float[] block = new float[CHUNK];
        for (TensorSpec spec : specs()) {
            FloatBuffer tensor = tensor(spec.name());
            for (int from = 0; from < tensor.limit(); from += CHUNK) {
                int count = Math.min(CHUNK, tensor.limit() - from);
                tensor.get(from, block, 0, count);
                for (int i = 0; i < count; i++) {
                    block[i] *= factor;
                }
                tensor.put(from, block, 0, count);
            }
        }
    }

    public void add(Gradients other) {
        if (!other.specs().equals(specs())) {
            throw new IllegalArgumentException(
                    "gradients of different tensors: " + other.specs().size() + " of them, " + specs().size());
        }
        float[] block = new float[CHUNK];
        float[] added = new float[CHUNK];
        for (TensorSpec spec : specs()) {
            FloatBuffer tensor = tensor(spec.name());
            FloatBuffer theirs = other.tensor(spec.name());
            for (int from = 0; from < tensor.limit(); from += CHUNK) {
                int count = Math.min(CHUNK, tensor.limit() - from);
                tensor.get(from, block, 0, count);
                theirs.get(from, added, 0, count);
                for (int i = 0; i < count; i++) {
                    block[i] += added[i];
                }
                tensor.put(from, block, 0, count);
            }
        }
    }

    /**
     * {@code sqrt(sum g^2)} over all parameters, summed in double; on a device, rows are summed in float32. NaN or
     * infinite if any element is.
     */
    public double l2Norm() {
        return Math.sqrt(tensors.newer().map(DeviceValues::squaredNorm).orElseGet(this::squaredNorm));
    }

    private double squaredNorm() {
        double sum = 0;
        float[] block = new float[CHUNK];
        for (TensorSpec spec : specs()) {
            FloatBuffer tensor = tensor(spec.name());
            while (tensor.hasRemaining()) {
                int count = Math.min(CHUNK, tensor.remaining());
                tensor.get(block, 0, count);
                for (int i = 0; i < count; i++) {
                    sum += (double) block[i] * block[i];
                }
            }
        }
        return sum;
    }
}
