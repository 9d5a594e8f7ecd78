package dev.millrace.weights;

import dev.millrace.policy.weights.Dtype;
import dev.millrace.schemas.TensorEncoding;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TensorLocation;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiConsumer;
import java.util.function.Function;

/**
 * Decodes the tensors of one location, applies deltas to their base, and passes each tensor on once its SHA-256 is
 * verified. Tensors are passed on in the manifest's order; a tensor that arrives early waits.
 *
 * <p>Tensors passed on are valid only after {@link #finish()}, which verifies all of them together. Used once, by one
 * thread.
 */
final class TensorVerifier {
    private final PublishedTensors published;
    private final TensorLocation location;
    private final Function<String, ByteBuffer> base;
    private final BiConsumer<String, ByteBuffer> sink;
    private final ContentHash all = new ContentHash();
    private final Map<String, ByteBuffer> early = new HashMap<>();
    private int next;

    /**
     * @param base a tensor of the base version by name; not called for an anchor
     * @param sink takes each tensor's name and data
     */
    TensorVerifier(PublishedTensors published, Function<String, ByteBuffer> base, BiConsumer<String, ByteBuffer> sink) {
        this.published = published;
        this.location = published.location();
        this.base = base;
        this.sink = sink;
    }

    /**
     * @param encoded encoded bytes of a tensor, of the manifest's size
     * @throws CorruptVersionException if it differs from the manifest
     */
    void accept(String name, ByteBuffer encoded) {
        early.put(name, encoded);
        List<TensorEntry> entries = location.getTensors();
        while (next < entries.size() && early.containsKey(entries.get(next).getName())) {
            TensorEntry entry = entries.get(next++);
            handOn(entry, Objects.requireNonNull(early.remove(entry.getName()), entry.getName()));
        }
    }

    private void handOn(TensorEntry entry, ByteBuffer encoded) {
        ByteBuffer data = decoded(entry, encoded);
        String found = ContentHash.of(data);
        if (!found.equals(entry.getSha256())) {
            throw published.corrupt("has other bytes in " + entry.getName() + " than its manifest says: SHA-256 "
                    + found + ", not " + entry.getSha256());
        }
        all.add(data);
        sink.accept(entry.getName(), data.duplicate());
    }

    private ByteBuffer decoded(TensorEntry entry, ByteBuffer encoded) {
        if (entry.getEncoding() == TensorEncoding.RAW) {
            return encoded;
        }
        Dtype dtype = Dtype.named(entry.getDtype())
                .orElseThrow(() -> new IllegalStateException(entry.getDtype() + " was required to be known"));
        try {
            return TensorDelta.apply(base.apply(entry.getName()), encoded, dtype);
        } catch (IllegalArgumentException e) {
            throw published.corrupt("has in " + entry.getName() + " no delta against version "
                    + location.getBaseVersion() + ": " + e.getMessage());
        }
    }

    /** @throws CorruptVersionException if a tensor is missing, or the hash over all differs from the manifest */
    void finish() {
        if (next < location.getTensors().size()) {
            throw published.corrupt(
                    "is incomplete: " + location.getTensors().get(next).getName() + " did not come");
        }
        String found = all.hex();
        if (!found.equals(location.getSha256())) {
            throw published.corrupt("has the right tensors, but the SHA-256 over all of them is " + found + ", not "
                    + location.getSha256());
        }
    }
}
