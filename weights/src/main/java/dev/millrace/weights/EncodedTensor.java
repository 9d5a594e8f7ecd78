package dev.millrace.weights;

import dev.millrace.policy.weights.Dtype;
import dev.millrace.schemas.TensorEncoding;
import dev.millrace.schemas.TensorEntry;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * A tensor as it goes onto the log: whole, or as what changed against its base.
 *
 * @param name on the log
 * @param dims axis lengths, outermost first
 * @param dtype what the values are
 * @param sha256 of the bytes that it has when it is whole; empty where {@code data} is these and nobody has looked yet
 * @param encoding how {@code data} holds it
 * @param encodedBytes that it has as it goes
 * @param source gives these, from position to limit; of a tensor that goes whole, by its own {@link NamedTensor#source}
 */
record EncodedTensor(
        String name,
        List<Long> dims,
        Dtype dtype,
        Optional<String> sha256,
        TensorEncoding encoding,
        long encodedBytes,
        Supplier<ByteBuffer> source) {

    static EncodedTensor whole(NamedTensor tensor) {
        return new EncodedTensor(
                tensor.name(),
                tensor.dims(),
                tensor.dtype(),
                Optional.empty(),
                TensorEncoding.RAW,
                tensor.bytes(),
                tensor::data);
    }

    static List<EncodedTensor> whole(List<NamedTensor> tensors) {
        return tensors.stream().map(EncodedTensor::whole).toList();
    }

    /**
     * As a delta, which holds none of the tensor's memory, or whole where a delta would not be smaller.
     *
     * @param data the tensor's
     */
    static EncodedTensor against(ByteBuffer base, NamedTensor tensor, ByteBuffer data) {
        return TensorDelta.encode(base, data, tensor.dtype())
                .map(delta -> new EncodedTensor(
                        tensor.name(),
                        tensor.dims(),
                        tensor.dtype(),
                        Optional.of(ContentHash.of(data)),
                        TensorEncoding.DELTA,
                        delta.remaining(),
                        () -> delta))
                .orElseGet(() -> whole(tensor));
    }

    /** Returns the bytes for the log. Call it once for all of a tensor's chunks. */
    ByteBuffer data() {
        return source.get();
    }

    /**
     * What the manifest says of it.
     *
     * @param chunks how many records carry it
     */
    TensorEntry entry(int chunks) {
        return TensorEntry.newBuilder()
                .setName(name)
                .setDtype(dtype.name())
                .setDims(dims)
                .setBytes(NamedTensor.bytes(dims, dtype))
                .setChunks(chunks)
                .setSha256(sha256.orElseGet(() -> ContentHash.of(data())))
                .setEncoding(encoding)
                .setEncodedBytes(encoding == TensorEncoding.RAW ? null : encodedBytes)
                .build();
    }
}
