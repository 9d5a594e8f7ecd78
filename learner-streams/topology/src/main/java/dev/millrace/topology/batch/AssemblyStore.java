package dev.millrace.topology.batch;

import dev.millrace.stages.BaselineMemory.Kept;
import dev.millrace.topology.batch.VersionHistory.Publication;
import dev.millrace.topology.batch.VersionHistory.Starved;
import dev.millrace.topology.state.CompactBytes.Reader;
import dev.millrace.topology.state.CompactBytes.Writer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * State of the assembly in one store; the first letter of a key is the kind of entry.
 *
 * <pre>
 *   m group/sample   a member that is in no batch yet: the offsets of its trajectory and its rollout, since when
 *   r group          a short group that was released: after which trajectory
 *   c group          a group that was closed short: when
 *   v version        a policy version: the batch it was made from, when it was published
 *   w version        the same for a version that waits for those before it
 *   n                the next batch's number
 *   s batch          a starved batch: the version that stayed current, when it was committed
 *   o                the next ordinal in the order of submission
 *   g ordinal        a group that left before its turn in that order
 *   k kind/key       what the advantage keeps of a key: figures, the batch and version that updated it
 * </pre>
 *
 * <p>It holds no part of a trajectory itself. Confined to one task.
 */
final class AssemblyStore {
    static final String NAME = "assembly";
    private static final byte FORMAT = 1;

    /**
     * Where a member lies.
     *
     * @param offset of its trajectory
     * @param rolloutPartition of the rollout it was made from
     * @param rolloutOffset of the rollout it was made from
     * @param sinceMs when it came, on the task's activity clock
     */
    record MemberPlace(long offset, int rolloutPartition, long rolloutOffset, long sinceMs) {}

    private final KeyValueStore<Bytes, byte[]> store;

    /** By rollout id. */
    final Section<String, MemberPlace> members = new Section<>(
            'm',
            id -> id,
            (to, place) -> to.number(place.offset())
                    .number(place.rolloutPartition())
                    .number(place.rolloutOffset())
                    .number(place.sinceMs()),
            from -> new MemberPlace(from.number(), (int) from.number(), from.number(), from.number()));
    /** By group id, the offset after which it was released. */
    final Section<String, Long> released = new Section<>('r', id -> id, Writer::number, Reader::number);
    /** By group id, when it was closed. */
    final Section<String, Long> closed = new Section<>('c', id -> id, Writer::number, Reader::number);

    final Section<Long, Publication> versions = publications('v');
    final Section<Long, Publication> ahead = publications('w');
    /** By batch id. */
    final Section<Long, Starved> starved = new Section<>(
            's',
            Long::parseLong,
            (to, batch) -> to.number(batch.version()).number(batch.timestampMs()),
            from -> new Starved(from.number(), from.number()));
    /** By ordinal; the value says nothing. */
    final Section<Long, Long> gone = new Section<>('g', Long::parseLong, Writer::number, Reader::number);

    /** By kind of advantage and key. */
    final Section<String, Kept> kept = new Section<>(
            'k',
            id -> id,
            (to, kept) -> {
                to.number(kept.batchId()).number(kept.version());
                kept.figures().forEach(figure -> to.number(Double.doubleToLongBits(figure)));
                return to;
            },
            from -> {
                long batchId = from.number();
                long version = from.number();
                List<Double> figures = new ArrayList<>();
                while (from.hasMore()) {
                    figures.add(Double.longBitsToDouble(from.number()));
                }
                return new Kept(batchId, version, figures);
            });

    private final Section<String, Long> nextBatchId = new Section<>('n', id -> id, Writer::number, Reader::number);
    private final Section<String, Long> nextOrdinal = new Section<>('o', id -> id, Writer::number, Reader::number);

    AssemblyStore(KeyValueStore<Bytes, byte[]> store) {
        this.store = store;
    }

    /** The next batch's number. */
    long nextBatchId() {
        return nextBatchId.get("", 0L);
    }

    void putNextBatchId(long next) {
        nextBatchId.put("", next);
    }

    /** The next ordinal in the order of submission. */
    long nextOrdinal() {
        return nextOrdinal.get("", 0L);
    }

    void putNextOrdinal(long next) {
        nextOrdinal.put("", next);
    }

    private Section<Long, Publication> publications(char letter) {
        return new Section<>(
                letter,
                Long::parseLong,
                (to, version) -> to.number(version.batchId()).number(version.timestampMs()),
                from -> new Publication(from.number(), from.number()));
    }

    /** The entries with one letter in front of their keys. */
    final class Section<K extends Comparable<K>, V> {
        private final char letter;
        private final Function<String, K> keys;
        private final BiFunction<Writer, V, Writer> writer;
        private final Function<Reader, V> reader;

        private Section(
                char letter,
                Function<String, K> keys,
                BiFunction<Writer, V, Writer> writer,
                Function<Reader, V> reader) {
            this.letter = letter;
            this.keys = keys;
            this.writer = writer;
            this.reader = reader;
        }

        void put(K key, V value) {
            store.put(bytes(key), writer.apply(new Writer(FORMAT), value).toByteArray());
        }

        void delete(K key) {
            store.put(bytes(key), null); // a delete would read the entry first
        }

        private V get(K key, V byDefault) {
            byte[] value = store.get(bytes(key));
            return value == null ? byDefault : read(value);
        }

        /** Every entry, by its key. */
        NavigableMap<K, V> all() {
            NavigableMap<K, V> found = new TreeMap<>();
            Bytes from = Bytes.wrap(new byte[] {(byte) letter});
            Bytes to = Bytes.wrap(new byte[] {(byte) (letter + 1)});
            try (KeyValueIterator<Bytes, byte[]> entries = store.range(from, to)) {
                while (entries.hasNext()) {
                    KeyValue<Bytes, byte[]> entry = entries.next();
                    byte[] key = entry.key.get();
                    if (key[0] == letter) { // the range includes its end
                        found.put(
                                keys.apply(new String(key, 1, key.length - 1, StandardCharsets.UTF_8)),
                                read(entry.value));
                    }
                }
            }
            return found;
        }

        private V read(byte[] value) {
            return reader.apply(new Reader(value, FORMAT, NAME));
        }

        private Bytes bytes(K key) {
            return Bytes.wrap((letter + key.toString()).getBytes(StandardCharsets.UTF_8));
        }
    }
}
