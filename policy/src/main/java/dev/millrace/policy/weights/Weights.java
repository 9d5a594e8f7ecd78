package dev.millrace.policy.weights;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.util.SplittableRandom;

/**
 * The parameters of one decoder: float32 tensors under their Hugging Face names, in direct little-endian buffers.
 *
 * <p>Sessions read the buffers in place at every call, so a write is a weight swap. One owner may write (the optimiser,
 * or a loader), and only while no session call with these weights is running; nothing here synchronises. Weights that other
 * threads read are frozen by agreement: publish a {@link #copy()} and go on writing to your own.
 */
public final class Weights {
    private final DecoderShape shape;
    private final TensorSet tensors;

    private Weights(DecoderShape shape, TensorSet tensors) {
        this.shape = shape;
        this.tensors = tensors;
    }

    /** All zeros, to be filled with {@link #load}. */
    public static Weights zeros(DecoderShape shape) {
        return new Weights(shape, new TensorSet(shape.tensors()));
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

    /** All tensors as a set; shares the memory. */
    public TensorSet tensors() {
        return tensors;
    }

    /** A writable view of one tensor, row-major; see the class for who may write. */
    public FloatBuffer tensor(String name) {
        return tensors.tensor(name);
    }

    /** A read-only view of one tensor's little-endian bytes: what goes onto the wire and into a digest. */
    public ByteBuffer bytes(String name) {
        return tensors.bytes(name);
    }

    /** Overwrites one tensor from little-endian bytes. */
    public void load(String name, ByteBuffer littleEndian) {
        tensors.load(name, littleEndian);
    }

    /** Overwrites all tensors with those of weights of the same shape. */
    public void copyFrom(Weights source) {
        tensors.copyFrom(source.tensors);
    }

    /** Independent weights with the same values. */
    public Weights copy() {
        return new Weights(shape, tensors.copy());
    }
}
