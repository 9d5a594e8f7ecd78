package dev.millrace.policy.weights;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * The base weights of adapters: read-only, and held in the bytes of their type, so that bfloat16 takes half the memory
 * of {@link Weights}. Thread-safe.
 */
public final class FrozenWeights {
    private final DecoderShape shape;
    private final Dtype dtype;
    private final String sha256;
    private final Map<String, ByteBuffer> tensors = new LinkedHashMap<>();

    /**
     * Copies weights.
     *
     * @param sha256 of their bytes in order: their identity in manifests
     */
    public FrozenWeights(Weights weights, String sha256) {
        if (weights.adapter().isPresent()) {
            throw new IllegalArgumentException("an adapter needs plain weights, and these already have one");
        }
        this.shape = weights.shape();
        this.dtype = weights.dtype();
        this.sha256 = sha256;
        for (TensorSpec spec : shape.tensors()) {
            ByteBuffer bytes = weights.parameters().bytes(spec.name());
            tensors.put(
                    spec.name(),
                    ByteBuffer.allocateDirect(bytes.remaining()).put(bytes).flip());
        }
    }

    public DecoderShape shape() {
        return shape;
    }

    public Dtype dtype() {
        return dtype;
    }

    /** SHA-256 of the bytes of all tensors in their order, lower-case hex. */
    public String sha256() {
        return sha256;
    }

    /** Copies the values into new weights. */
    public Weights thawed() {
        Weights weights = Weights.zeros(shape, dtype);
        tensors.forEach((name, bytes) -> weights.parameters().load(name, bytes.duplicate()));
        return weights;
    }

    /**
     * Copies the values into borrowed memory; valid until its owner writes it again.
     *
     * @param memory of all of the shape's tensors; overwritten
     */
    public Weights thawedInto(TensorSet memory) {
        Weights weights = Weights.in(memory, shape, dtype);
        tensors.forEach((name, bytes) -> weights.parameters().load(name, bytes.duplicate()));
        return weights;
    }

    /**
     * Some values of a tensor.
     *
     * @param from first of them
     * @param into overwritten from its beginning
     */
    void read(String name, int from, float[] into, int count) {
        ByteBuffer bytes =
                Objects.requireNonNull(tensors.get(name), name).duplicate().order(ByteOrder.LITTLE_ENDIAN);
        if (dtype == Dtype.F32) {
            FloatBuffer values = bytes.asFloatBuffer();
            values.get(from, into, 0, count);
        } else {
            var values = bytes.asShortBuffer();
            for (int i = 0; i < count; i++) {
                into[i] = Bfloat16.value(values.get(from + i));
            }
        }
    }
}
