package dev.millrace.weights;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEncoding;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TensorLocation;
import java.util.List;

/**
 * The tensors that a manifest names at one location. Readers deliver the raw bytes; {@link TensorVerifier} verifies
 * them.
 */
record PublishedTensors(PolicyVersion manifest, TensorLocation location) {

    /**
     * Refuses tensors that the caller cannot use.
     *
     * @param expected the tensors that the caller can use, in order
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

    static long encodedBytes(TensorEntry entry) {
        return entry.getEncodedBytes() == null ? entry.getBytes() : entry.getEncodedBytes();
    }

    CorruptVersionException corrupt(String what) {
        return new CorruptVersionException(
                "version " + manifest.getVersion() + " of " + manifest.getPolicyId() + " " + where() + " " + what);
    }

    private String where() {
        return location.getUri() != null
                ? "in " + location.getUri()
                : "on " + location.getTopic() + "-" + location.getPartition() + " at offsets "
                        + location.getFirstOffset() + " to " + location.getLastOffset();
    }
}
