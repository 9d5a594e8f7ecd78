package dev.millrace.topology.state;

import java.util.Map;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.internals.CachedStateStore;

/** Builds the topology's stores: small values, changelogs that stay short, so that a restore reads little. */
public final class StateStores {
    /** A changelog is compacted only below its active segment, which therefore must not grow large. */
    public static final Map<String, String> CHANGELOG = Map.of(
            "segment.bytes", String.valueOf(16 << 20),
            "min.cleanable.dirty.ratio", "0.2",
            "delete.retention.ms", "600000");

    private StateStores() {}

    /** Where stores keep what they hold between restarts. */
    public enum Kind {
        /** In memory; a restart reads the changelog. */
        IN_MEMORY,
        /** In RocksDB under the state directory; a restart on the same directory reads only new records. */
        ROCKSDB
    }

    /** The store is cached: the updates of one key within a commit reach the changelog as one. */
    public static StoreBuilder<KeyValueStore<Bytes, byte[]>> store(String name, Kind kind) {
        KeyValueBytesStoreSupplier supplier =
                kind == Kind.IN_MEMORY ? Stores.inMemoryKeyValueStore(name) : Stores.persistentKeyValueStore(name);
        return Stores.keyValueStoreBuilder(supplier, Serdes.Bytes(), Serdes.ByteArray())
                .withLoggingEnabled(CHANGELOG)
                .withCachingEnabled();
    }

    /**
     * Keeps entries that are put and deleted within one commit off the changelog.
     *
     * <p>Most rollouts that arrive in a burst are joined and batched before the commit. For each of them the engine's cache
     * would write a tombstone. It leaves out the deletion of a key that the store below does not hold only if somebody listens
     * to its flushes.
     */
    public static void dropShortLived(StateStore store) {
        ((CachedStateStore<?, ?>) store).setFlushListener(flushed -> {}, false);
    }
}
