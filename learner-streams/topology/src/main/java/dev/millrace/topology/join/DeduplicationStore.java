package dev.millrace.topology.join;

import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * The groups seen so far, for deduplication; bounded in time and in number.
 *
 * <p>About 40 bytes for a group of 8 in the store, and the same again in memory for the eviction order. Confined to one
 * task.
 */
final class DeduplicationStore {
    private record Entry(String groupId, long touchedMs) {}

    private final KeyValueStore<Bytes, byte[]> store;
    private final long retentionMs;
    private final int maxGroups;
    /** Each group once, in the order in which they were last looked at for being old. */
    private final Deque<Entry> order = new ArrayDeque<>();

    private long newestTouchedMs;

    DeduplicationStore(KeyValueStore<Bytes, byte[]> store, long retentionMs, int maxGroups) {
        this.store = store;
        this.retentionMs = retentionMs;
        this.maxGroups = maxGroups;
        List<Entry> found = new ArrayList<>();
        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
            while (all.hasNext()) {
                KeyValue<Bytes, byte[]> entry = all.next();
                found.add(new Entry(
                        new String(entry.key.get(), StandardCharsets.UTF_8),
                        DeduplicationEntry.fromBytes(entry.value).touchedMs()));
            }
        }
        found.sort(Comparator.comparingLong(Entry::touchedMs).thenComparing(Entry::groupId));
        for (Entry entry : found) {
            order.add(entry);
            newestTouchedMs = entry.touchedMs();
        }
    }

    /** When the newest of all was touched; 0 if there is none. */
    long newestTouchedMs() {
        return newestTouchedMs;
    }

    /** What is remembered of a group; an empty memory if nothing is. */
    DeduplicationEntry get(String groupId) {
        byte[] value = store.get(key(groupId));
        return value == null ? new DeduplicationEntry() : DeduplicationEntry.fromBytes(value);
    }

    /** Stores the current state of a group. */
    void put(String groupId, DeduplicationEntry memory, long nowMs) {
        Bytes key = key(groupId);
        boolean known = store.get(key) != null;
        memory.touch(nowMs);
        newestTouchedMs = Math.max(newestTouchedMs, nowMs);
        store.put(key, memory.toBytes());
        if (!known) {
            order.addLast(new Entry(groupId, nowMs));
        }
        while (order.size() > maxGroups) {
            store.delete(key(order.removeFirst().groupId()));
        }
    }

    /** Forgets groups that nothing was heard of for the retention time. */
    void forgetOlder(long nowMs) {
        while (!order.isEmpty() && order.peekFirst().touchedMs() + retentionMs <= nowMs) {
            Entry oldest = order.removeFirst();
            long touchedMs = get(oldest.groupId()).touchedMs();
            if (touchedMs + retentionMs <= nowMs) {
                store.delete(key(oldest.groupId()));
            } else {
                order.addLast(new Entry(oldest.groupId(), touchedMs));
            }
        }
    }

    private static Bytes key(String groupId) {
        return Bytes.wrap(groupId.getBytes(StandardCharsets.UTF_8));
    }
}
