package dev.millrace.weights;

import dev.millrace.schemas.TensorEntry;
import dev.millrace.weights.store.ObjectStore;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.file.NoSuchFileException;
import java.util.Optional;
import java.util.function.BiConsumer;

/** Reads what lies of a version in an object store: tensor after tensor, in the manifest's order. */
final class StoredTensors {
    private static final long MOST_BYTES = Integer.MAX_VALUE - 8; // of a Java array

    private final String key;
    private final Optional<ObjectStore> store;

    /**
     * @param key by which it is configured
     * @param store empty if the configuration names none; reading then says so
     */
    StoredTensors(String key, Optional<ObjectStore> store) {
        this.key = key;
        this.store = store;
    }

    /**
     * Hands on what lies there, tensor after tensor, in heap buffers that belong to the taker; not verified yet.
     *
     * @throws VersionUnavailableException if the object is not there or cannot be read
     * @throws CorruptVersionException if it is shorter or longer than the manifest says
     * @throws IllegalStateException if this role was not given the store
     */
    void read(PublishedTensors published, BiConsumer<String, ByteBuffer> taker) {
        long version = published.manifest().getVersion();
        URI uri = uri(published);
        ObjectStore from = store.orElseThrow(() -> new IllegalStateException("version " + version + " lies at " + uri
                + ", but " + key + " is kafka here; give every role of the run the same " + key));
        try (InputStream in = from.get(uri)) {
            for (TensorEntry entry : published.location().getTensors()) {
                if (PublishedTensors.encodedBytes(entry) > MOST_BYTES) {
                    throw published.corrupt("has " + entry.getName() + " in " + PublishedTensors.encodedBytes(entry)
                            + " bytes, and a tensor has at most " + MOST_BYTES);
                }
                byte[] data = in.readNBytes((int) PublishedTensors.encodedBytes(entry));
                if (data.length < PublishedTensors.encodedBytes(entry)) {
                    throw published.corrupt("is incomplete: it ends within " + entry.getName() + ", after "
                            + data.length + " of " + PublishedTensors.encodedBytes(entry) + " bytes");
                }
                taker.accept(entry.getName(), ByteBuffer.wrap(data));
            }
            if (in.read() != -1) {
                throw published.corrupt("is longer than its manifest says");
            }
        } catch (NoSuchFileException e) {
            throw new VersionUnavailableException(
                    version, "version " + version + " is no longer kept: there is no " + uri, e);
        } catch (IOException e) {
            throw new VersionUnavailableException(
                    version, "version " + version + " cannot be read from " + uri + ": " + e, e);
        } catch (IllegalArgumentException e) {
            throw new IllegalStateException("version " + version + ": " + e.getMessage(), e);
        }
    }

    private static URI uri(PublishedTensors published) {
        try {
            return URI.create(published.location().getUri());
        } catch (IllegalArgumentException e) {
            throw published.corrupt("lies at what is no address: " + e.getMessage());
        }
    }
}
