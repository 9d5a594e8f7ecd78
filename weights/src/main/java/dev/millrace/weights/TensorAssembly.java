package dev.millrace.weights;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.WeightChunk;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Puts the chunks of one version back together and checks them against the manifest.
 *
 * <p>Chunks of one tensor must come in order and without a gap or an overlap; tensors may follow each other in any way.
 * Nothing may be used before {@link #finish()} has returned: it is what compares the hashes.
 */
final class TensorAssembly {
    private final PolicyVersion manifest;
    private final TensorLocation location;
    private final Map<String, Target> targets = new LinkedHashMap<>();

    /** How far one tensor has come. */
    private static final class Target {
        final TensorEntry entry;
        final ByteBuffer data;
        int nextChunk;

        Target(TensorEntry entry) {
            this.entry = entry;
            this.data = ByteBuffer.allocate(Math.toIntExact(entry.getBytes()));
        }
    }

    /**
     * @param expected the tensors that the caller can use, in order
     * @throws CorruptVersionException if the manifest names other tensors, or the same with other dims
     */
    TensorAssembly(PolicyVersion manifest, TensorLocation location, List<TensorSpec> expected) {
        this.manifest = manifest;
        this.location = location;
        requireExpected(expected);
        for (TensorEntry entry : location.getTensors()) {
            targets.put(entry.getName(), new Target(entry));
        }
    }

    private void requireExpected(List<TensorSpec> expected) {
        List<TensorEntry> found = location.getTensors();
        for (int i = 0; i < Math.max(expected.size(), found.size()); i++) {
            String due = i < expected.size() ? describe(expected.get(i)) : "no further tensor";
            String there = i < found.size() ? describe(found.get(i)) : "no further tensor";
            if (!due.equals(there)) {
                throw corrupt("has as tensor " + i + " " + there + " where the decoder's shape has " + due);
            }
        }
    }

    private static String describe(TensorSpec spec) {
        return describe(spec.name(), "F32", spec.dims(), (long) spec.elementCount() * Float.BYTES);
    }

    private static String describe(TensorEntry entry) {
        return describe(entry.getName(), entry.getDtype(), entry.getDims(), entry.getBytes());
    }

    private static String describe(String name, String dtype, List<Long> dims, long bytes) {
        return name + " " + dtype + dims + " of " + bytes + " bytes";
    }

    /** Takes a chunk if it is of this version, and passes over every other. */
    void accept(WeightChunk chunk, long offset) {
        if (!isOurs(chunk)) {
            return;
        }
        Target target = targets.get(chunk.getTensor());
        if (target == null) {
            throw corrupt("has a chunk of " + chunk.getTensor() + " at offset " + offset
                + ", a tensor that its manifest does not name");
        }
        if (chunk.getChunk() != target.nextChunk || chunk.getStart() != target.data.position()) {
            throw corrupt("has chunk " + chunk.getChunk() + " of " + chunk.getTensor() + " with start " + chunk.getStart()
                + " at offset " + offset + " where chunk " + target.nextChunk + " with start " + target.data.position()
                + " was due");
        }
        if (chunk.getData().remaining() > target.data.remaining()) {
            throw corrupt("has chunk " + chunk.getChunk() + " of " + chunk.getTensor() + " with "
                + chunk.getData().remaining() + " bytes at offset " + offset + ", but only " + target.data.remaining()
                + " of the tensor's " + target.entry.getBytes() + " bytes are left");
        }
        target.data.put(chunk.getData().duplicate());
        target.nextChunk++;
    }

    /**
     * The data of every tensor by name, in the manifest's order, after the hash of each and of all were found right.
     *
     * @throws CorruptVersionException naming the tensor that is incomplete or differs
     */
    Map<String, ByteBuffer> finish() {
        ContentHash all = new ContentHash();
        Map<String, ByteBuffer> tensors = new LinkedHashMap<>();
        for (Target target : targets.values()) {
            TensorEntry entry = target.entry;
            if (target.data.hasRemaining() || target.nextChunk != entry.getChunks()) {
                throw corrupt("is incomplete: " + entry.getName() + " has " + target.nextChunk + " of " + entry.getChunks()
                    + " chunks and " + target.data.position() + " of " + entry.getBytes() + " bytes");
            }
            ByteBuffer data = target.data.flip();
            String found = ContentHash.of(data);
            if (!found.equals(entry.getSha256())) {
                throw corrupt("has other bytes in " + entry.getName() + " than its manifest says: SHA-256 " + found
                    + ", not " + entry.getSha256());
            }
            all.add(data);
            tensors.put(entry.getName(), data);
        }
        String found = all.hex();
        if (!found.equals(location.getSha256())) {
            throw corrupt("has the right tensors, but the SHA-256 over all of them is " + found + ", not "
                + location.getSha256());
        }
        return tensors;
    }

    private boolean isOurs(WeightChunk chunk) {
        return chunk.getVersion() == manifest.getVersion()
            && chunk.getEpoch() == manifest.getEpoch()
            && chunk.getRunId().equals(manifest.getRunId())
            && chunk.getPolicyId().equals(manifest.getPolicyId());
    }

    private CorruptVersionException corrupt(String what) {
        return new CorruptVersionException(manifest.getVersion(), "version " + manifest.getVersion() + " of "
            + manifest.getPolicyId() + " on " + location.getTopic() + "-" + location.getPartition() + " at offsets "
            + location.getFirstOffset() + " to " + location.getLastOffset() + " " + what);
    }
}
