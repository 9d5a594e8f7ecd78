package dev.millrace.weights;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Parameters;
import dev.millrace.policy.weights.TensorSet;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.Supplier;

/**
 * One tensor to be published: its name on the log, axis lengths, type, and read-only bytes.
 *
 * @param name name on the log; for a weight its safetensors name
 * @param dims axis lengths, outermost first
 * @param source supplies its bytes, little-endian from position to limit; converted bytes are new at each call
 */
record NamedTensor(String name, List<Long> dims, Dtype dtype, Supplier<ByteBuffer> source) {

    /** Wraps existing bytes, shared with their owner; readers never move the position. */
    NamedTensor(String name, List<Long> dims, Dtype dtype, ByteBuffer data) {
        this(name, dims, dtype, () -> data);
        data();
    }

    long bytes() {
        return bytes(dims, dtype);
    }

    static long bytes(List<Long> dims, Dtype dtype) {
        return dims.stream().mapToLong(Long::longValue).reduce((long) dtype.bytes(), Math::multiplyExact);
    }

    /** Its bytes, read-only. */
    ByteBuffer data() {
        ByteBuffer data = source.get();
        if (bytes() != data.remaining()) {
            throw new IllegalArgumentException("tensor " + name + " " + dtype + " of dims " + dims + " takes " + bytes()
                    + " bytes, not " + data.remaining());
        }
        return data;
    }

    static List<NamedTensor> of(Parameters weights) {
        return weights.specs().stream().map(spec -> of(weights, spec)).toList();
    }

    /** One tensor of weights; for rounded weights its bytes are a copy, which lives while it is referenced. */
    static NamedTensor of(Parameters weights, TensorSpec spec) {
        return new NamedTensor(spec.name(), spec.dims(), weights.dtype(), () -> weights.bytes(spec.name()));
    }

    /** The tensors of a set of float32 in its order, each under {@code prefix} followed by its name. */
    static List<NamedTensor> of(TensorSet set, String prefix) {
        return set.specs().stream()
                .map(spec -> new NamedTensor(prefix + spec.name(), spec.dims(), Dtype.F32, set.bytes(spec.name())))
                .toList();
    }
}
