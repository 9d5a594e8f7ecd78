package dev.millrace.weights;

import dev.millrace.policy.weights.TensorSet;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * One float32 tensor to be published: its name on the log, its axis lengths, and a read-only view of its bytes.
 *
 * @param name name on the log, which for a weight is its safetensors name
 * @param dims axis lengths, outermost first
 * @param data little-endian, from position to limit; shared with its owner, never moved by a reader
 */
record NamedTensor(String name, List<Long> dims, ByteBuffer data) {

    NamedTensor {
        long bytes = dims.stream().mapToLong(Long::longValue).reduce(Float.BYTES, Math::multiplyExact);
        if (bytes != data.remaining()) {
            throw new IllegalArgumentException(
                    "tensor " + name + " of dims " + dims + " takes " + bytes + " bytes, not " + data.remaining());
        }
    }

    /** The tensors of a set in its order, each under {@code prefix} followed by its name. */
    static List<NamedTensor> of(TensorSet set, String prefix) {
        return set.specs().stream()
                .map(spec -> new NamedTensor(prefix + spec.name(), spec.dims(), set.bytes(spec.name())))
                .toList();
    }
}
