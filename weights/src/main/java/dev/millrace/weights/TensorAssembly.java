package dev.millrace.weights;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.WeightChunk;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Reassembles the chunks of one version, and passes on each complete tensor.
 *
 * <p>Chunks of one tensor must come in order and without a gap or an overlap; chunks of different tensors may
 * interleave. {@link TensorVerifier} checks them against the manifest.
 */
final class TensorAssembly {
    private final PublishedTensors published;
    private final BiConsumer<String, ByteBuffer> whole;
    private final Map<String, Target> targets = new LinkedHashMap<>();

    private static final class Target {
        final TensorEntry entry;
        /** From the first chunk to the last. */
        @Nullable
        ByteBuffer data;

        int nextChunk;
        int position;

        Target(TensorEntry entry) {
            this.entry = entry;
        }

        long remaining() {
            return PublishedTensors.encodedBytes(entry) - position;
        }
    }

    /**
     * @param published already checked by {@link PublishedTensors#require}
     * @param whole receives a complete tensor's encoded bytes, by name; not verified yet
     */
    TensorAssembly(PublishedTensors published, BiConsumer<String, ByteBuffer> whole) {
        this.whole = whole;
        this.published = published;
        for (TensorEntry entry : published.location().getTensors()) {
            targets.put(entry.getName(), new Target(entry));
        }
    }

    /** Takes a chunk of this version; ignores all others. */
    void accept(WeightChunk chunk, long offset) {
        if (!isOurs(chunk)) {
            return;
        }
        Target target = targets.get(chunk.getTensor());
        if (target == null) {
            throw published.corrupt("has a chunk of " + chunk.getTensor() + " at offset " + offset
                    + ", a tensor that its manifest does not name");
        }
        if (chunk.getChunk() != target.nextChunk || chunk.getStart() != target.position) {
            throw published.corrupt(
                    "has chunk " + chunk.getChunk() + " of " + chunk.getTensor() + " with start " + chunk.getStart()
                            + " at offset " + offset + " where chunk " + target.nextChunk + " with start "
                            + target.position
                            + " was due");
        }
        if (chunk.getData().remaining() > target.remaining()) {
            throw published.corrupt("has chunk " + chunk.getChunk() + " of " + chunk.getTensor() + " with "
                    + chunk.getData().remaining() + " bytes at offset " + offset + ", but only "
                    + target.remaining()
                    + " of the tensor's " + PublishedTensors.encodedBytes(target.entry) + " bytes are left");
        }
        ByteBuffer data = target.data;
        if (data == null) {
            data = ByteBuffer.allocate(Math.toIntExact(PublishedTensors.encodedBytes(target.entry)));
            target.data = data;
        }
        data.put(chunk.getData().duplicate());
        target.position = data.position();
        target.nextChunk++;
        if (isWhole(target)) {
            target.data = null;
            whole.accept(target.entry.getName(), data.flip());
        }
    }

    private static boolean isWhole(Target target) {
        return target.remaining() == 0 && target.nextChunk == target.entry.getChunks();
    }

    /** @throws CorruptVersionException naming the tensor that is incomplete */
    void finish() {
        for (Target target : targets.values()) {
            if (!isWhole(target)) {
                TensorEntry entry = target.entry;
                throw published.corrupt("is incomplete: " + entry.getName() + " has " + target.nextChunk + " of "
                        + entry.getChunks() + " chunks and " + target.position + " of "
                        + PublishedTensors.encodedBytes(entry) + " bytes");
            }
        }
    }

    private boolean isOurs(WeightChunk chunk) {
        PolicyVersion manifest = published.manifest();
        return chunk.getVersion() == manifest.getVersion()
                && chunk.getEpoch() == manifest.getEpoch()
                && chunk.getRunId().equals(manifest.getRunId())
                && chunk.getPolicyId().equals(manifest.getPolicyId());
    }
}
