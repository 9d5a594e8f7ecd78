package dev.millrace.weights;

import dev.millrace.schemas.TensorEncoding;
import dev.millrace.schemas.TensorEntry;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * A tensor as it goes onto the log: whole, or as what changed against its base.
 *
 * @param tensor   what it is
 * @param encoding how {@code data} holds it
 * @param data     from position to limit; the tensor's own memory if it goes whole
 */
record EncodedTensor(NamedTensor tensor, TensorEncoding encoding, ByteBuffer data) {

    static EncodedTensor whole(NamedTensor tensor) {
        return new EncodedTensor(tensor, TensorEncoding.RAW, tensor.data());
    }

    static List<EncodedTensor> whole(List<NamedTensor> tensors) {
        return tensors.stream().map(EncodedTensor::whole).toList();
    }

    /** As a delta, or whole where a delta would not be smaller. */
    static EncodedTensor against(ByteBuffer base, NamedTensor tensor) {
        return TensorDelta.encode(base, tensor.data(), tensor.dtype())
                .map(delta -> new EncodedTensor(tensor, TensorEncoding.DELTA, delta))
                .orElseGet(() -> whole(tensor));
    }

    String name() {
        return tensor.name();
    }

    /**
     * What the manifest says of it.
     *
     * @param chunks how many records carry it
     */
    TensorEntry entry(int chunks) {
        return TensorEntry.newBuilder()
                .setName(tensor.name())
                .setDtype(tensor.dtype().name())
                .setDims(tensor.dims())
                .setBytes(tensor.data().remaining())
                .setChunks(chunks)
                .setSha256(ContentHash.of(tensor.data()))
                .setEncoding(encoding)
                .setEncodedBytes(encoding == TensorEncoding.RAW ? null : (long) data.remaining())
                .build();
    }
}
