package dev.millrace.weights;

import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.WeightChunk;
import dev.millrace.schemas.run.RunIdentity;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * Splits the tensors of one version into chunks that fit a Kafka record.
 *
 * <p>Chunk {@code k} of a tensor holds the bytes {@code [k * chunkBytes, min((k+1) * chunkBytes, size))} of its
 * encoding. The data of a chunk shares the encoding's memory.
 */
final class TensorChunks {
    /** Leaves room for keys and fields below the default limit of 1 MiB of brokers and producers. */
    static final int MAX_CHUNK_BYTES = 960 * 1024;

    private final RunIdentity run;
    private final long version;
    private final int chunkBytes;

    TensorChunks(RunIdentity run, long version, int chunkBytes) {
        requireChunkBytes(chunkBytes);
        this.run = run;
        this.version = version;
        this.chunkBytes = chunkBytes;
    }

    static void requireChunkBytes(int chunkBytes) {
        if (chunkBytes < Float.BYTES || chunkBytes > MAX_CHUNK_BYTES || chunkBytes % Float.BYTES != 0) {
            throw new IllegalArgumentException("chunk_bytes must be a multiple of 4 from 4 to " + MAX_CHUNK_BYTES
                    + ", so that a record stays below 1 MiB and no value is split: " + chunkBytes);
        }
    }

    private int count(EncodedTensor tensor) {
        return (int) ((tensor.encodedBytes() + chunkBytes - 1) / chunkBytes);
    }

    TensorEntry entry(EncodedTensor tensor) {
        return tensor.entry(count(tensor));
    }

    /** The tensor's chunks in order, made one at a time. */
    Iterable<WeightChunk> of(EncodedTensor tensor) {
        int count = count(tensor);
        return () -> new Iterator<>() {
            private final ByteBuffer data = tensor.data();
            private int next;

            @Override
            public boolean hasNext() {
                return next < count;
            }

            @Override
            public WeightChunk next() {
                if (next >= count) {
                    throw new NoSuchElementException(tensor.name() + " has " + count + " chunks");
                }
                return chunk(tensor, data, next++);
            }
        };
    }

    private WeightChunk chunk(EncodedTensor tensor, ByteBuffer data, int index) {
        int start = index * chunkBytes;
        int length = Math.min(chunkBytes, data.remaining() - start);
        return WeightChunk.newBuilder()
                .setRunId(run.runId())
                .setEpoch(run.epoch())
                .setPolicyId(run.policyId())
                .setVersion(version)
                .setTensor(tensor.name())
                .setChunk(index)
                .setStart(start)
                .setData(data.slice(data.position() + start, length))
                .build();
    }
}
