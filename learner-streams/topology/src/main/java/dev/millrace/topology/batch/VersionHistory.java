package dev.millrace.topology.batch;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/**
 * Which version was current when: the versions of the policy and when each was published.
 *
 * <p>A batch is judged by the version that was current when its last trajectory was complete, whenever it is
 * assembled. So it does not matter how far ahead the versions are read, and a replay decides as the live run did.
 * Confined to one task.
 */
final class VersionHistory {
    private static final long NONE = -1;

    /**
     * When a version was published, and what of.
     *
     * @param batchId the batch it was made from; -1 for the initial weights
     * @param timestampMs when, Unix milliseconds
     */
    record Publication(long batchId, long timestampMs) {}

    private final NavigableMap<Long, Publication> published = new TreeMap<>();

    /** A version was published; one that is known already keeps its time. */
    void add(long version, Publication publication) {
        published.putIfAbsent(version, publication);
    }

    /**
     * True if a member names a version that has not been published as far as is known: it is on its way, or was made
     * up. Taken at its word, one made-up version would make everything else stale. Where no version is known at all,
     * nobody publishes any, and members are believed.
     */
    boolean lacksVersionOf(Member member) {
        return !published.isEmpty() && newestNamedBy(member) > published.lastKey();
    }

    private static long newestNamedBy(Member member) {
        return Math.max(member.newestVersion(), member.proximalVersion());
    }

    /**
     * The version that was current for these members: the newest that was published by the time the last of them was
     * complete, or a newer one if a member shows that it existed, whatever the clocks say. -1 if nothing is known.
     *
     * @param notBeforeMs a later time than the members', if something else had to be waited for
     */
    long current(Collection<Member> members, long notBeforeMs) {
        long timeMs = notBeforeMs;
        long shown = NONE;
        for (Member member : members) {
            timeMs = Math.max(timeMs, member.timestampMs());
            shown = Math.max(shown, newestNamedBy(member));
        }
        return Math.max(shown, publishedBy(timeMs));
    }

    private long publishedBy(long timeMs) {
        for (Map.Entry<Long, Publication> version : published.descendingMap().entrySet()) {
            if (version.getValue().timestampMs() <= timeMs) {
                return version.getKey();
            }
        }
        return NONE;
    }

    /** When the version was published that was made from a batch; the beginning of time if that is not known. */
    long publishedMsOf(long batchId) {
        for (Publication publication : published.descendingMap().values()) {
            if (publication.batchId() == batchId) {
                return publication.timestampMs();
            }
        }
        return Long.MIN_VALUE;
    }

    /**
     * Forgets what no later batch can ask for: versions that are older than the one current at {@code timeMs}.
     *
     * @return the versions that were forgotten
     */
    Collection<Long> forgetBefore(long timeMs) {
        long current = publishedBy(timeMs);
        Map<Long, Publication> older = published.headMap(current, false);
        Collection<Long> forgotten = List.copyOf(older.keySet());
        older.clear();
        return forgotten;
    }
}
