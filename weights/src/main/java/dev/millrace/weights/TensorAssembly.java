package dev.millrace.weights;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.WeightChunk;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Puts the chunks of one version back together.
 *
 * <p>Chunks of one tensor must come in order and without a gap or an overlap; tensors may follow each other in any way.
 * That they are what the manifest says is found out by {@link PublishedTensors#verified}.
 */
final class TensorAssembly {
    private final PublishedTensors published;
    private final Map<String, Target> targets = new LinkedHashMap<>();

    /** How far one tensor has come. */
    private static final class Target {
        final TensorEntry entry;
        final ByteBuffer data;
        int nextChunk;

        Target(TensorEntry entry) {
            this.entry = entry;
            this.data = ByteBuffer.allocate(Math.toIntExact(PublishedTensors.encodedBytes(entry)));
        }
    }

    /** @param published already known to be what the caller can use */
    TensorAssembly(PublishedTensors published) {
        this.published = published;
        for (TensorEntry entry : published.location().getTensors()) {
            targets.put(entry.getName(), new Target(entry));
        }
    }

    /** Takes a chunk if it is of this version, and passes over every other. */
    void accept(WeightChunk chunk, long offset) {
        if (!isOurs(chunk)) {
            return;
        }
        Target target = targets.get(chunk.getTensor());
        if (target == null) {
            throw published.corrupt("has a chunk of " + chunk.getTensor() + " at offset " + offset
                    + ", a tensor that its manifest does not name");
        }
        if (chunk.getChunk() != target.nextChunk || chunk.getStart() != target.data.position()) {
            throw published.corrupt(
                    "has chunk " + chunk.getChunk() + " of " + chunk.getTensor() + " with start " + chunk.getStart()
                            + " at offset " + offset + " where chunk " + target.nextChunk + " with start "
                            + target.data.position()
                            + " was due");
        }
        if (chunk.getData().remaining() > target.data.remaining()) {
            throw published.corrupt("has chunk " + chunk.getChunk() + " of " + chunk.getTensor() + " with "
                    + chunk.getData().remaining() + " bytes at offset " + offset + ", but only "
                    + target.data.remaining()
                    + " of the tensor's " + PublishedTensors.encodedBytes(target.entry) + " bytes are left");
        }
        target.data.put(chunk.getData().duplicate());
        target.nextChunk++;
    }

    /**
     * What the chunks hold of every tensor, by name, in the manifest's order; not verified yet.
     *
     * @throws CorruptVersionException naming the tensor that is incomplete
     */
    Map<String, ByteBuffer> finish() {
        Map<String, ByteBuffer> tensors = new LinkedHashMap<>();
        for (Target target : targets.values()) {
            TensorEntry entry = target.entry;
            if (target.data.hasRemaining() || target.nextChunk != entry.getChunks()) {
                throw published.corrupt("is incomplete: " + entry.getName() + " has " + target.nextChunk + " of "
                        + entry.getChunks() + " chunks and " + target.data.position() + " of "
                        + PublishedTensors.encodedBytes(entry) + " bytes");
            }
            tensors.put(entry.getName(), target.data.flip());
        }
        return tensors;
    }

    private boolean isOurs(WeightChunk chunk) {
        PolicyVersion manifest = published.manifest();
        return chunk.getVersion() == manifest.getVersion()
                && chunk.getEpoch() == manifest.getEpoch()
                && chunk.getRunId().equals(manifest.getRunId())
                && chunk.getPolicyId().equals(manifest.getPolicyId());
    }
}
