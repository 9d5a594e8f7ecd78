package dev.millrace.weights;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEncoding;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TensorLocation;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;

/**
 * The tensors that a manifest names at one location, and the proof that what was read is them.
 *
 * <p>Whoever reads brings the bytes as they lie there; {@link #verified} makes tensors of them, applying deltas to their
 * base, and hands nothing out before the SHA-256 of every result and the one over all of them were right.
 */
record PublishedTensors(PolicyVersion manifest, TensorLocation location) {

    /**
     * Refuses tensors that the caller has no use for.
     *
     * @param expected the tensors that the caller can use, in order
     * @param dtype what their values must be
     * @throws CorruptVersionException if the manifest names other tensors, the same with other dims, or impossible sizes
     */
    void require(List<TensorSpec> expected, Dtype dtype) {
        List<TensorEntry> found = location.getTensors();
        for (int i = 0; i < Math.max(expected.size(), found.size()); i++) {
            String due = i < expected.size() ? describe(expected.get(i), dtype) : "no further tensor";
            String there = i < found.size() ? describe(found.get(i)) : "no further tensor";
            if (!due.equals(there)) {
                throw corrupt("has as tensor " + i + " " + there + " where the decoder's shape has " + due);
            }
        }
        for (TensorEntry entry : found) {
            long encoded = encodedBytes(entry);
            if (entry.getEncoding() == TensorEncoding.UNKNOWN) {
                throw corrupt("has " + entry.getName() + " in an encoding that this release does not know; update it");
            }
            boolean delta = entry.getEncoding() == TensorEncoding.DELTA;
            if (delta ? encoded < 1 || encoded >= entry.getBytes() : encoded != entry.getBytes()) {
                throw corrupt("has " + entry.getName() + " as " + entry.getEncoding() + " in " + encoded
                        + " bytes; whole it takes " + entry.getBytes() + ", and a delta is smaller");
            }
            if (delta && location.getBaseVersion() == null) {
                throw corrupt("has " + entry.getName() + " as a delta, but its manifest names no base version");
            }
        }
    }

    private static String describe(TensorSpec spec, Dtype dtype) {
        return describe(spec.name(), dtype.name(), spec.dims(), (long) spec.elementCount() * dtype.bytes());
    }

    private static String describe(TensorEntry entry) {
        return describe(entry.getName(), entry.getDtype(), entry.getDims(), entry.getBytes());
    }

    private static String describe(String name, String dtype, List<Long> dims, long bytes) {
        return name + " " + dtype + dims + " of " + bytes + " bytes";
    }

    /** Size of a tensor as it lies there. */
    static long encodedBytes(TensorEntry entry) {
        return entry.getEncodedBytes() == null ? entry.getBytes() : entry.getEncodedBytes();
    }

    /**
     * The data of every tensor by name, in the manifest's order.
     *
     * @param encoded what lies there, by tensor, each of the size that the manifest says
     * @param base    a tensor of the base version by name; not asked if this is an anchor
     * @throws CorruptVersionException naming the tensor that differs
     */
    Map<String, ByteBuffer> verified(Map<String, ByteBuffer> encoded, Function<String, ByteBuffer> base) {
        ContentHash all = new ContentHash();
        Map<String, ByteBuffer> tensors = new LinkedHashMap<>();
        for (TensorEntry entry : location.getTensors()) {
            ByteBuffer data =
                    decoded(entry, Objects.requireNonNull(encoded.get(entry.getName()), entry.getName()), base);
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

    private ByteBuffer decoded(TensorEntry entry, ByteBuffer encoded, Function<String, ByteBuffer> base) {
        if (entry.getEncoding() == TensorEncoding.RAW) {
            return encoded;
        }
        Dtype dtype = Dtype.named(entry.getDtype())
                .orElseThrow(() -> new IllegalStateException(entry.getDtype() + " was required to be known"));
        try {
            return TensorDelta.apply(base.apply(entry.getName()), encoded, dtype);
        } catch (IllegalArgumentException e) {
            throw corrupt("has in " + entry.getName() + " no delta against version " + location.getBaseVersion() + ": "
                    + e.getMessage());
        }
    }

    CorruptVersionException corrupt(String what) {
        return new CorruptVersionException(
                manifest.getVersion(),
                "version " + manifest.getVersion() + " of " + manifest.getPolicyId() + " " + where() + " " + what);
    }

    private String where() {
        return location.getUri() != null
                ? "in " + location.getUri()
                : "on " + location.getTopic() + "-" + location.getPartition() + " at offsets "
                        + location.getFirstOffset() + " to " + location.getLastOffset();
    }
}
