package dev.millrace.topology.join;

import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.join.Waiting.Kind;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Rollouts and scores that wait for their partner: payloads in memory, their places on the log in the store.
 *
 * <pre>
 *   store (and its changelog)   rollout id -> kind, offset, since      about 30 bytes each
 *   memory                      payloads, up to a number of bytes      what is beyond is read again when it is needed
 * </pre>
 *
 * <p>A payload is never written anywhere again. After a restart all of them are on the log only, and come back in
 * stretches: who needs one also gets those that lie behind it, as far as memory goes, since partners arrive in
 * about the order in which their halves did. When memory is full, newcomers stay on the log and the oldest stay in
 * memory, because the oldest are asked for first. Confined to one task.
 */
final class PendingStore {
    /** Payloads that are read again at once, at most. */
    private static final int STRETCH = 256;

    private final KeyValueStore<Bytes, byte[]> store;
    private final PayloadSource payloads;
    private final long cacheBytes;
    private final Map<String, Waiting> byId = new HashMap<>();
    /** By offset, which is also by age: both only grow. */
    private final Map<Kind, TreeMap<Long, Waiting>> byOffset =
        Map.of(Kind.ROLLOUT, new TreeMap<>(), Kind.SCORE, new TreeMap<>());
    private final Map<String, Arrival> cached = new HashMap<>();
    private long cachedBytes;

    /**
     * Takes over what the store holds.
     *
     * @param cacheBytes heap for payloads
     */
    PendingStore(KeyValueStore<Bytes, byte[]> store, PayloadSource payloads, long cacheBytes) {
        this.store = store;
        this.payloads = payloads;
        this.cacheBytes = cacheBytes;
        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
            while (all.hasNext()) {
                KeyValue<Bytes, byte[]> entry = all.next();
                remember(Waiting.fromBytes(new String(entry.key.get(), StandardCharsets.UTF_8), entry.value));
            }
        }
    }

    /** How many of a kind wait. */
    int size(Kind kind) {
        return byOffset.get(kind).size();
    }

    /** When the newest of all began to wait; 0 if nothing waits. */
    long newestSinceMs() {
        long newest = 0;
        for (TreeMap<Long, Waiting> waiting : byOffset.values()) {
            newest = Math.max(newest, waiting.isEmpty() ? 0 : waiting.lastEntry().getValue().sinceMs());
        }
        return newest;
    }

    /** What waits under a name, if it is of this kind. */
    Optional<Waiting> find(Kind kind, String rolloutId) {
        Waiting waiting = byId.get(rolloutId);
        return waiting == null || waiting.kind() != kind ? Optional.empty() : Optional.of(waiting);
    }

    /** The one of a kind that has waited longest. */
    Optional<Waiting> oldest(Kind kind) {
        TreeMap<Long, Waiting> waiting = byOffset.get(kind);
        return waiting.isEmpty() ? Optional.empty() : Optional.of(waiting.firstEntry().getValue());
    }

    /** Lets an arrival wait. Nothing else may wait under its name. */
    void add(Arrival arrival, long sinceMs) {
        Waiting waiting = Waiting.of(arrival, sinceMs);
        remember(waiting);
        store.put(key(waiting), waiting.toBytes());
        keep(waiting, arrival);
    }

    /** Ends its wait. */
    void drop(Waiting waiting) {
        byId.remove(waiting.rolloutId());
        byOffset.get(waiting.kind()).remove(waiting.offset());
        store.delete(key(waiting));
        release(waiting);
    }

    /** The payload of what waits, and goes on waiting; empty if the log no longer holds it. */
    Optional<Arrival> payload(Waiting waiting) {
        if (!cached.containsKey(waiting.rolloutId())) {
            readAgain(waiting);
        }
        return Optional.ofNullable(cached.get(waiting.rolloutId()));
    }

    /** Brings back the payload that is asked for, and those behind it as far as half of the memory goes. */
    private void readAgain(Waiting asked) {
        makeRoom(asked.kind());
        List<Waiting> stretch = new ArrayList<>();
        long room = cacheBytes - cachedBytes;
        for (Waiting waiting : byOffset.get(asked.kind()).tailMap(asked.offset(), true).values()) {
            room -= waiting.payloadBytes();
            if (waiting != asked && (room < 0 || stretch.size() == STRETCH || cached.containsKey(waiting.rolloutId()))) {
                break;
            }
            stretch.add(waiting);
        }
        for (Arrival payload : payloads.read(asked.kind(), stretch)) {
            cached.put(payload.name().rolloutId(), payload);
            cachedBytes += payload.bytes();
        }
    }

    /** Lets go of the newest payloads until half of the memory is free, so that reading again goes in stretches. */
    private void makeRoom(Kind kind) {
        for (Waiting newest : byOffset.get(kind).descendingMap().values()) {
            if (cachedBytes <= cacheBytes / 2) {
                return;
            }
            release(newest);
        }
    }

    private void remember(Waiting waiting) {
        byId.put(waiting.rolloutId(), waiting);
        byOffset.get(waiting.kind()).put(waiting.offset(), waiting);
    }

    private void keep(Waiting waiting, Arrival payload) {
        if (cachedBytes + payload.bytes() <= cacheBytes) {
            cached.put(waiting.rolloutId(), payload);
            cachedBytes += payload.bytes();
        }
    }

    private void release(Waiting waiting) {
        Arrival payload = cached.remove(waiting.rolloutId());
        if (payload != null) {
            cachedBytes -= payload.bytes();
        }
    }

    private static Bytes key(Waiting waiting) {
        return Bytes.wrap(waiting.rolloutId().getBytes(StandardCharsets.UTF_8));
    }
}
