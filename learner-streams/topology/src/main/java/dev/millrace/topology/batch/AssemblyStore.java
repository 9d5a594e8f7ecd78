package dev.millrace.topology.batch;

import dev.millrace.topology.batch.VersionHistory.Publication;
import dev.millrace.topology.batch.VersionHistory.Starved;
import dev.millrace.topology.state.CompactBytes;
import java.nio.charset.StandardCharsets;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.LongConsumer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * What the assembly remembers, in one store; a letter in front of the key says what it is.
 *
 * <pre>
 *   m group/sample   a member that is in no batch yet: where its trajectory and its rollout lie, since when
 *   r group          a short group that was released: after which trajectory
 *   c group          a group that was closed short: when
 *   v version        a policy version: what batch it was made from, when it was published
 *   w version        the same of one that waits for those before it
 *   n                the next batch's number
 *   s batch          a batch that was starved: the version that stayed, when it was committed
 *   o                the next ordinal in the order of submission
 *   g ordinal        a group that left before its turn in that order
 * </pre>
 *
 * <p>Nothing of a trajectory itself is in it. Confined to one task.
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

    AssemblyStore(KeyValueStore<Bytes, byte[]> store) {
        this.store = store;
    }

    void putMember(String rolloutId, MemberPlace place) {
        store.put(
                key('m', rolloutId),
                new CompactBytes.Writer(FORMAT)
                        .number(place.offset())
                        .number(place.rolloutPartition())
                        .number(place.rolloutOffset())
                        .number(place.sinceMs())
                        .toByteArray());
    }

    void deleteMember(String rolloutId) {
        store.delete(key('m', rolloutId));
    }

    /** Every member, by rollout id. */
    void forEachMember(BiConsumer<String, MemberPlace> action) {
        forEach(
                'm',
                (rolloutId, value) -> action.accept(
                        rolloutId,
                        new MemberPlace(value.number(), (int) value.number(), value.number(), value.number())));
    }

    void putReleased(String groupId, long afterOffset) {
        putNumber('r', groupId, afterOffset);
    }

    void deleteReleased(String groupId) {
        store.delete(key('r', groupId));
    }

    void forEachReleased(BiConsumer<String, Long> action) {
        forEach('r', (groupId, value) -> action.accept(groupId, value.number()));
    }

    void putClosed(String groupId, long closedMs) {
        putNumber('c', groupId, closedMs);
    }

    void deleteClosed(String groupId) {
        store.delete(key('c', groupId));
    }

    void forEachClosed(BiConsumer<String, Long> action) {
        forEach('c', (groupId, value) -> action.accept(groupId, value.number()));
    }

    void putVersion(long version, Publication publication) {
        putPublication('v', version, publication);
    }

    void deleteVersion(long version) {
        store.delete(key('v', Long.toString(version)));
    }

    NavigableMap<Long, Publication> versions() {
        return publications('v');
    }

    void putAhead(long version, Publication publication) {
        putPublication('w', version, publication);
    }

    void deleteAhead(long version) {
        store.delete(key('w', Long.toString(version)));
    }

    NavigableMap<Long, Publication> ahead() {
        return publications('w');
    }

    private void putPublication(char section, long version, Publication publication) {
        store.put(
                key(section, Long.toString(version)),
                new CompactBytes.Writer(FORMAT)
                        .number(publication.batchId())
                        .number(publication.timestampMs())
                        .toByteArray());
    }

    private NavigableMap<Long, Publication> publications(char section) {
        NavigableMap<Long, Publication> found = new TreeMap<>();
        forEach(
                section,
                (version, value) ->
                        found.put(Long.parseLong(version), new Publication(value.number(), value.number())));
        return found;
    }

    void putStarved(long batchId, Starved batch) {
        store.put(
                key('s', Long.toString(batchId)),
                new CompactBytes.Writer(FORMAT)
                        .number(batch.version())
                        .number(batch.timestampMs())
                        .toByteArray());
    }

    void deleteStarved(long batchId) {
        store.delete(key('s', Long.toString(batchId)));
    }

    void forEachStarved(BiConsumer<Long, Starved> action) {
        forEach(
                's',
                (batchId, value) ->
                        action.accept(Long.parseLong(batchId), new Starved(value.number(), value.number())));
    }

    /** The next batch's number. */
    long nextBatchId() {
        return number('n', 0);
    }

    void putNextBatchId(long next) {
        putNumber('n', "", next);
    }

    /** The next ordinal in the order of submission. */
    long nextOrdinal() {
        return number('o', 0);
    }

    void putNextOrdinal(long next) {
        putNumber('o', "", next);
    }

    void putGone(long ordinal) {
        putNumber('g', Long.toString(ordinal), 0);
    }

    void deleteGone(long ordinal) {
        store.delete(key('g', Long.toString(ordinal)));
    }

    void forEachGone(LongConsumer action) {
        forEach('g', (ordinal, value) -> action.accept(Long.parseLong(ordinal)));
    }

    private long number(char section, long byDefault) {
        byte[] value = store.get(key(section, ""));
        return value == null ? byDefault : reader(value).number();
    }

    private void putNumber(char section, String name, long number) {
        store.put(
                key(section, name),
                new CompactBytes.Writer(FORMAT).number(number).toByteArray());
    }

    private void forEach(char section, BiConsumer<String, CompactBytes.Reader> action) {
        Bytes from = key(section, "");
        Bytes to = Bytes.wrap(new byte[] {(byte) (section + 1)});
        try (KeyValueIterator<Bytes, byte[]> entries = store.range(from, to)) {
            while (entries.hasNext()) {
                KeyValue<Bytes, byte[]> entry = entries.next();
                byte[] key = entry.key.get();
                if (key[0] == section) { // the range includes its end
                    action.accept(new String(key, 1, key.length - 1, StandardCharsets.UTF_8), reader(entry.value));
                }
            }
        }
    }

    private static CompactBytes.Reader reader(byte[] value) {
        return new CompactBytes.Reader(value, FORMAT, NAME);
    }

    private static Bytes key(char section, String name) {
        return Bytes.wrap((section + name).getBytes(StandardCharsets.UTF_8));
    }
}
