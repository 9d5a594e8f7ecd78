package dev.millrace.weights;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Parameters;
import dev.millrace.policy.weights.TensorSet;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.Supplier;

/**
 * One tensor to be published: its name on the log, its axis lengths, what its values are, and its bytes, not to be written.
 *
 * @param name name on the log, which for a weight is its safetensors name
 * @param dims axis lengths, outermost first
 * @param dtype what the values are
 * @param source gives its bytes, little-endian from position to limit; where they are made for it, they are made anew each time
 */
record NamedTensor(String name, List<Long> dims, Dtype dtype, Supplier<ByteBuffer> source) {

    /** Of bytes that are there: shared with their owner, never moved by a reader. */
    NamedTensor(String name, List<Long> dims, Dtype dtype, ByteBuffer data) {
        this(name, dims, dtype, () -> data);
        data();
    }

    /** How many bytes it has. */
    long bytes() {
        return bytes(dims, dtype);
    }

    static long bytes(List<Long> dims, Dtype dtype) {
        return dims.stream().mapToLong(Long::longValue).reduce((long) dtype.bytes(), Math::multiplyExact);
    }

    /** Its bytes, not to be written. */
    ByteBuffer data() {
        ByteBuffer data = source.get();
        if (bytes() != data.remaining()) {
            throw new IllegalArgumentException("tensor " + name + " " + dtype + " of dims " + dims + " takes " + bytes()
                    + " bytes, not " + data.remaining());
        }
        return data;
    }

    /** The tensors of weights in their order. */
    static List<NamedTensor> of(Parameters weights) {
        return weights.specs().stream().map(spec -> of(weights, spec)).toList();
    }

    /** One tensor of weights; where these are rounded, its bytes are in memory of their own, for as long as somebody holds them. */
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
