package dev.millrace.weights;

import dev.millrace.policy.weights.Dtype;
import dev.millrace.schemas.TensorEncoding;
import dev.millrace.schemas.TensorEntry;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * A tensor encoded for the log: whole, or as a delta against its base.
 *
 * @param dims axis lengths, outermost first
 * @param sha256 of the whole tensor's bytes; empty if {@code data} holds these and the hash is not computed yet
 * @param encoding how {@code data} holds it
 * @param source supplies the encoding, from position to limit; for a whole tensor its own {@link NamedTensor#source}
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

    /** Encodes a delta, which shares no memory with the tensor, or the whole tensor if a delta would not be smaller. */
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

    /** Its manifest entry. */
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
