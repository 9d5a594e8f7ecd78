package dev.millrace.replay;

import java.util.Iterator;
import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.jspecify.annotations.Nullable;

/** A task's store without a stream engine: a sorted map, in the order in which the engine's stores are read. */
final class MemoryStore implements KeyValueStore<Bytes, byte[]> {
    private final String name;
    private final TreeMap<Bytes, byte[]> entries = new TreeMap<>();

    MemoryStore(String name) {
        this.name = name;
    }

    @Override
    public byte @Nullable [] get(Bytes key) {
        return entries.get(key);
    }

    @Override
    public void put(Bytes key, byte[] value) {
        if (value == null) {
            entries.remove(key);
        } else {
            entries.put(key, value);
        }
    }

    @Override
    public byte[] putIfAbsent(Bytes key, byte[] value) {
        return entries.putIfAbsent(key, value);
    }

    @Override
    public void putAll(List<KeyValue<Bytes, byte[]>> all) {
        all.forEach(entry -> put(entry.key, entry.value));
    }

    @Override
    public byte @Nullable [] delete(Bytes key) {
        return entries.remove(key);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        return iterator(entries.subMap(from, true, to, true));
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        return iterator(entries);
    }

    @Override
    public long approximateNumEntries() {
        return entries.size();
    }

    /** Of what is there now: the caller may write meanwhile. */
    private static KeyValueIterator<Bytes, byte[]> iterator(NavigableMap<Bytes, byte[]> of) {
        TreeMap<Bytes, byte[]> now = new TreeMap<>(of);
        Iterator<Bytes> keys = now.keySet().iterator();
        return new KeyValueIterator<>() {
            private @Nullable Bytes next = keys.hasNext() ? keys.next() : null;

            @Override
            public boolean hasNext() {
                return next != null;
            }

            @Override
            public KeyValue<Bytes, byte[]> next() {
                if (next == null) {
                    throw new java.util.NoSuchElementException();
                }
                KeyValue<Bytes, byte[]> entry = KeyValue.pair(next, now.get(next));
                next = keys.hasNext() ? keys.next() : null;
                return entry;
            }

            @Override
            public Bytes peekNextKey() {
                if (next == null) {
                    throw new java.util.NoSuchElementException();
                }
                return next;
            }

            @Override
            public void close() {
                // holds nothing
            }
        };
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public void init(StateStoreContext context, StateStore root) {
        throw new IllegalStateException("a replay's store belongs to no stream engine");
    }

    @Override
    public void close() {
        // nothing to close
    }

    @Override
    public boolean persistent() {
        return false;
    }

    @Override
    public boolean isOpen() {
        return true;
    }
}
