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
     * A starved batch.
     *
     * @param version the unchanged version
     * @param timestampMs time of its commit, Unix milliseconds
     */
    record Starved(long version, long timestampMs) {}

    /**
     * Publication of a version.
     *
     * @param batchId batch that made it; -1 for the initial weights
     * @param timestampMs Unix milliseconds
     */
    record Publication(long batchId, long timestampMs) {}

    private final ManifestChain<Publication> chain;
    /** Versions on the chain, without a gap. */
    private final NavigableMap<Long, Publication> published = new TreeMap<>();

    /** Starved batches, by their ids. */
    private final NavigableMap<Long, Starved> starved = new TreeMap<>();

    /** @param first the epoch's first version */
    VersionHistory(long first) {
        this.chain = ManifestChain.ofBatches(first);
    }

    /** True before the first version. */
    boolean isEmpty() {
        return published.isEmpty();
    }

    /**
     * Adds a published version. A version on the chain keeps its time, unless the new record names another batch: one of the two
     * is foreign, and the learner restores its own.
     *
     * @return new or changed versions, in order; empty if it is ahead or known
     */
    NavigableMap<Long, Publication> add(long version, Publication publication) {
        NavigableMap<Long, Publication> taken = chain.add(Link.ofBatch(version, publication.batchId()), publication)
                .versions();
        published.putAll(taken);
        return taken;
    }

    /** Newest consumed batch; -1 without one. */
    long consumed() {
        return Math.max(
                published.isEmpty() ? NONE : published.lastEntry().getValue().batchId(),
                starved.isEmpty() ? NONE : starved.lastKey());
    }

    /** Whether this version waits for earlier ones. */
    boolean isAhead(long version) {
        return chain.isAhead(version);
    }

    /** Removes and returns the version farthest ahead if too many wait. */
    OptionalLong giveUpFarthest() {
        return chain.giveUpFarthest();
    }

    /** Removes a deleted version that waits; one on the chain stays. */
    void deleted(long version) {
        chain.deleted(version);
    }

    /**
     * Restores the chain from a task's store.
     *
     * @return versions off the chain, which are ignored
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
     * True if a member names an unpublished version, which may arrive or be forged. Trusting it would let one forged version
     * make everything else stale. Without any version no learner publishes, and members are trusted.
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

    /** Time at which a batch was consumed: of its version or its starved step; {@code Long.MIN_VALUE} if unknown. */
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
     * Forgets versions older than the one current at {@code timeMs}, which no later batch needs.
     *
     * @return the forgotten versions and batches
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

    /** Versions and starved batches that no later batch needs. */
    record Forgotten(List<Long> versions, List<Long> starvedBatches) {}
}
