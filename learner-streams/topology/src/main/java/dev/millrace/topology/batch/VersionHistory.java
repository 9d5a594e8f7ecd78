package dev.millrace.topology.batch;

import dev.millrace.schemas.run.ManifestChain;
import dev.millrace.schemas.run.ManifestChain.Link;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.OptionalLong;
import java.util.TreeMap;

/**
 * Which version was current when: the versions of the policy with their publication times, and the starved batches,
 * which made no version.
 *
 * <p>Versions count by their {@link ManifestChain}, which is one without hashes here.
 *
 * <p>A batch is judged by the version that was current when its last trajectory was complete, independent of when it is
 * assembled. So decisions do not depend on how far ahead the versions are read, and a replay decides as the live run
 * did. Confined to one task.
 */
final class VersionHistory {
    private static final long NONE = -1;

    /**
     * A batch that was consumed and made no version.
     *
     * @param version that stayed
     * @param timestampMs when it was committed, Unix milliseconds
     */
    record Starved(long version, long timestampMs) {}

    /**
     * When a version was published, and what of.
     *
     * @param batchId the batch it was made from; -1 for the initial weights
     * @param timestampMs when, Unix milliseconds
     */
    record Publication(long batchId, long timestampMs) {}

    private final ManifestChain<Publication> chain;
    /** Without a gap. */
    private final NavigableMap<Long, Publication> published = new TreeMap<>();

    /** Starved batches, by their ids. */
    private final NavigableMap<Long, Starved> starved = new TreeMap<>();

    /** @param first the epoch's first version */
    VersionHistory(long first) {
        this.chain = ManifestChain.ofBatches(first);
    }

    /** True if nothing is known yet. */
    boolean isEmpty() {
        return published.isEmpty();
    }

    /**
     * A version was published. One that counts keeps its time, unless it is said to be of another batch: then the chain's own manifest was written
     * again over a made-up one, or this one was made up and that is to come.
     *
     * @return the versions about which something new is known, in order; empty if it waits, or is known
     */
    NavigableMap<Long, Publication> add(long version, Publication publication) {
        NavigableMap<Long, Publication> taken = chain.add(Link.ofBatch(version, publication.batchId()), publication)
                .versions();
        published.putAll(taken);
        return taken;
    }

    /** The newest batch that was consumed, as versions and starved batches say; -1 without one. */
    long consumed() {
        return Math.max(
                published.isEmpty() ? NONE : published.lastEntry().getValue().batchId(),
                starved.isEmpty() ? NONE : starved.lastKey());
    }

    /** Whether this version waits for those before it. */
    boolean isAhead(long version) {
        return chain.isAhead(version);
    }

    /** The version that is farthest ahead, if too many wait: it waits no longer. */
    OptionalLong giveUpFarthest() {
        return chain.giveUpFarthest();
    }

    /** The version was deleted: it is waited for no longer. One that counts stays. */
    void deleted(long version) {
        chain.deleted(version);
    }

    /**
     * What a task's store holds of the chain.
     *
     * @return what does not continue it, and is not taken
     */
    List<Long> restore(NavigableMap<Long, Publication> versions) {
        List<Long> strays = new ArrayList<>();
        versions.forEach((version, publication) -> {
            if (published.isEmpty()) {
                published.putAll(chain.begin(Link.ofBatch(version, publication.batchId()), publication));
            } else if (add(version, publication).isEmpty()) {
                chain.deleted(version);
                strays.add(version);
            }
        });
        return strays;
    }

    /** Records a batch that was consumed without making a version. */
    void addStarved(long batchId, Starved batch) {
        starved.putIfAbsent(batchId, batch);
    }

    /**
     * The version at which the step on a batch will start: the current one, and one more for each batch that lies
     * before it and was not consumed by then. Exact if none of these will be starved; otherwise the step starts at an
     * earlier version.
     *
     * @param batchId the batch that is about to be made
     * @param current version at the time
     * @param notBeforeMs the time now, or an earlier time that a member proves to have passed
     */
    long expectedAtStep(long batchId, long current, long notBeforeMs) {
        Publication made = published.get(current);
        if (made == null) {
            return current; // it is unknown which batches were consumed
        }
        long consumed = made.batchId();
        for (Map.Entry<Long, Starved> batch : starved.entrySet()) {
            if (batch.getValue().version() == current && batch.getValue().timestampMs() <= notBeforeMs) {
                consumed = Math.max(consumed, batch.getKey());
            }
        }
        return current + Math.max(0, batchId - 1 - consumed);
    }

    /** The same from all versions known now; far below 0 if none is known. */
    long expectedAtStep(long batchId) {
        return published.isEmpty() ? Long.MIN_VALUE / 2 : expectedAtStep(batchId, published.lastKey(), Long.MAX_VALUE);
    }

    /**
     * True if a member names a version that is not known to be published: it is on its way, or was made up. If members
     * were trusted, one made-up version would make everything else stale. If no version is known at all, no learner
     * publishes any, and members are trusted.
     */
    boolean lacksVersionOf(Member member) {
        return !published.isEmpty() && newestNamedBy(member) > published.lastKey();
    }

    private static long newestNamedBy(Member member) {
        return Math.max(member.newestVersion(), member.versions().proximal());
    }

    /**
     * The version that was current for these members: the newest that was published by the time the last of them was
     * complete, or a newer one if a member proves that it existed, even against the clocks. -1 if nothing is known.
     *
     * @param notBeforeMs a later time than the members', if the batch also waited for something else
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

    /** When a batch was consumed: when its version was published, or it was starved; the beginning of time if not known. */
    long consumedMsOf(long batchId) {
        Starved none = starved.get(batchId);
        if (none != null) {
            return none.timestampMs();
        }
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
     * @return what was forgotten
     */
    Forgotten forgetBefore(long timeMs) {
        long current = publishedBy(timeMs);
        Map<Long, Publication> older = published.headMap(current, false);
        List<Long> versions = List.copyOf(older.keySet());
        older.clear();
        chain.forgetBefore(current);
        List<Long> batches = starved.entrySet().stream()
                .filter(batch -> batch.getValue().version() < current)
                .map(Map.Entry::getKey)
                .toList();
        batches.forEach(starved::remove);
        return new Forgotten(versions, batches);
    }

    /** What no later batch can ask for: versions, and starved batches. */
    record Forgotten(List<Long> versions, List<Long> starvedBatches) {}
}
