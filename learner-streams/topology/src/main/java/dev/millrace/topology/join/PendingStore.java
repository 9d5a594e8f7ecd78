package dev.millrace.topology.join;

import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.JoinSide;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.BiFunction;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Rollouts and their partners that wait for each other: payloads in memory, their places on the log in the store.
 *
 * <pre>
 *   store (and its changelog)   kind, rollout id -> offset, since      about 30 bytes each
 *   memory                      payloads, up to a number of bytes      the rest is read again on demand
 * </pre>
 *
 * <p>A payload is never written again. After a restart all payloads are only on the log and are read back in stretches.
 * A read also loads the payloads after the requested one, as far as memory allows, because partners arrive in about the
 * order of their rollouts. When memory is full, newcomers stay on the log and the oldest stay in memory, because they
 * are needed first. Confined to one task.
 */
final class PendingStore {
    /** Payloads that are read again at once, at most. */
    private static final int STRETCH = 256;

    private final KeyValueStore<Bytes, byte[]> store;
    private final BiFunction<JoinSide, List<PendingRecord>, List<Arrival>> payloads;
    private final long cacheBytes;
    private final Map<JoinSide, Shelf> shelves = new EnumMap<>(JoinSide.class);
    private long cachedBytes;

    /** All of one kind that wait. Offsets grow with age, so what is ordered by offset is ordered by age. */
    private static final class Shelf {
        private final Map<String, PendingRecord> byId = new HashMap<>();
        private final TreeMap<Long, PendingRecord> byOffset = new TreeMap<>();
        /** Those that have no partner here: of rollouts, all of them; of partners, those whose rollout does not wait. */
        private final TreeMap<Long, PendingRecord> alone = new TreeMap<>();

        private final Map<String, Arrival> cached = new HashMap<>();

        void put(PendingRecord waiting, boolean isAlone) {
            byId.put(waiting.rolloutId(), waiting);
            byOffset.put(waiting.offset(), waiting);
            if (isAlone) {
                alone.put(waiting.offset(), waiting);
            }
        }

        void remove(PendingRecord waiting) {
            byId.remove(waiting.rolloutId());
            byOffset.remove(waiting.offset());
            alone.remove(waiting.offset());
        }
    }

    /**
     * Takes over what the store holds.
     *
     * @param payloads reads again those of one kind that the log still holds, given at least one in the order of the offsets
     * @param cacheBytes heap for payloads
     */
    PendingStore(
            KeyValueStore<Bytes, byte[]> store,
            BiFunction<JoinSide, List<PendingRecord>, List<Arrival>> payloads,
            long cacheBytes) {
        this.store = store;
        this.payloads = payloads;
        this.cacheBytes = cacheBytes;
        for (JoinSide kind : JoinSide.values()) {
            shelves.put(kind, new Shelf());
        }
        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
            while (all.hasNext()) {
                KeyValue<Bytes, byte[]> entry = all.next();
                byte[] key = entry.key.get();
                index(PendingRecord.fromBytes(new String(key, 1, key.length - 1, StandardCharsets.UTF_8), entry.value));
            }
        }
    }

    private Shelf shelf(JoinSide kind) {
        return Objects.requireNonNull(shelves.get(kind), kind::name);
    }

    /** How many of a kind wait. */
    int size(JoinSide kind) {
        return shelf(kind).byOffset.size();
    }

    /** When the newest of all began to wait; 0 if nothing waits. */
    long newestSinceMs() {
        long newest = 0;
        for (Shelf shelf : shelves.values()) {
            newest = Math.max(
                    newest,
                    shelf.byOffset.isEmpty()
                            ? 0
                            : shelf.byOffset.lastEntry().getValue().sinceMs());
        }
        return newest;
    }

    /** What waits of a kind under a name. */
    Optional<PendingRecord> find(JoinSide kind, String rolloutId) {
        return Optional.ofNullable(shelf(kind).byId.get(rolloutId));
    }

    /** Returns the record of a kind that has waited longest; ignores partners whose rollout is waiting. */
    Optional<PendingRecord> oldest(JoinSide kind) {
        TreeMap<Long, PendingRecord> alone = shelf(kind).alone;
        return alone.isEmpty()
                ? Optional.empty()
                : Optional.of(alone.firstEntry().getValue());
    }

    /** Lets an arrival wait. Nothing else of its kind may wait under its name, and only partners that belong to it. */
    void add(Arrival arrival, long sinceMs) {
        PendingRecord waiting = PendingRecord.of(arrival, sinceMs);
        index(waiting);
        store.put(key(waiting), waiting.toBytes());
        keep(waiting, arrival);
    }

    /** Ends its wait. */
    void remove(PendingRecord waiting) {
        shelf(waiting.kind()).remove(waiting);
        store.put(key(waiting), null); // a delete would read the entry first
        release(waiting);
    }

    /** Returns the payload of a waiting record, which continues to wait; empty if the log no longer has it. */
    Optional<Arrival> payload(PendingRecord waiting) {
        Map<String, Arrival> cached = shelf(waiting.kind()).cached;
        if (!cached.containsKey(waiting.rolloutId())) {
            readAgain(waiting);
        }
        return Optional.ofNullable(cached.get(waiting.rolloutId()));
    }

    /** Reads the requested payload, and those after it up to half of the memory. */
    private void readAgain(PendingRecord asked) {
        Shelf shelf = shelf(asked.kind());
        evictToFit(shelf);
        List<PendingRecord> stretch = new ArrayList<>();
        long room = cacheBytes - cachedBytes;
        for (PendingRecord waiting :
                shelf.byOffset.tailMap(asked.offset(), true).values()) {
            room -= waiting.payloadBytes();
            if (waiting.offset() != asked.offset()
                    && (room < 0 || stretch.size() == STRETCH || shelf.cached.containsKey(waiting.rolloutId()))) {
                break;
            }
            stretch.add(waiting);
        }
        for (Arrival payload : payloads.apply(asked.kind(), stretch)) {
            shelf.cached.put(payload.name().rolloutId(), payload);
            cachedBytes += payload.bytes();
        }
    }

    /** Lets go of the newest payloads until half of the memory is free, so that reading again goes in stretches. */
    private void evictToFit(Shelf shelf) {
        evictOldest(shelf);
        shelves.values().forEach(this::evictOldest);
    }

    private void evictOldest(Shelf shelf) {
        for (PendingRecord newest : shelf.byOffset.descendingMap().values()) {
            if (cachedBytes <= cacheBytes / 2) {
                return;
            }
            release(newest);
        }
    }

    private void index(PendingRecord waiting) {
        String rolloutId = waiting.rolloutId();
        boolean isRollout = waiting.kind() == JoinSide.ROLLOUT;
        shelf(waiting.kind())
                .put(waiting, isRollout || !shelf(JoinSide.ROLLOUT).byId.containsKey(rolloutId));
        if (isRollout) {
            for (JoinSide partner : JoinSide.partners()) {
                find(partner, rolloutId).ifPresent(met -> shelf(partner).alone.remove(met.offset()));
            }
        }
    }

    private void keep(PendingRecord waiting, Arrival payload) {
        if (cachedBytes + payload.bytes() <= cacheBytes) {
            shelf(waiting.kind()).cached.put(waiting.rolloutId(), payload);
            cachedBytes += payload.bytes();
        }
    }

    private void release(PendingRecord waiting) {
        Arrival payload = shelf(waiting.kind()).cached.remove(waiting.rolloutId());
        if (payload != null) {
            cachedBytes -= payload.bytes();
        }
    }

    private static Bytes key(PendingRecord waiting) {
        return Bytes.wrap((waiting.kind().ordinal() + waiting.rolloutId()).getBytes(StandardCharsets.UTF_8));
    }
}
