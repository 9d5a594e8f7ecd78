package dev.millrace.topology.batch;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets groups pass in the order of their ordinals: each waits until all before it have passed or are gone.
 *
 * <p>A group none of whose samples ever arrives would hold up the rest for ever; after a while it is passed over, and
 * passes on its own if it comes after all. Confined to one task.
 */
final class SubmissionOrder {
    private static final Logger LOG = LoggerFactory.getLogger(SubmissionOrder.class);
    private static final long NOT_BLOCKED = -1;
    /** A later epoch counts on from where admission was, which its first group that is ready says well enough. */
    private static final long UNKNOWN = -1;

    /** A group that waits for its turn. */
    private record Waiting(Group group, ReadyGroups.Turn turn) {}

    private final AssemblyStore store;
    private final long patienceMs;
    private final TreeMap<Long, List<Waiting>> waiting = new TreeMap<>();
    /** Ordinals of groups that left before their turn came. */
    private final TreeSet<Long> gone = new TreeSet<>();

    private long next;
    private long blockedSinceMs = NOT_BLOCKED;

    /**
     * @param patienceMs activity after which a missing group is passed over
     * @param isFirstEpoch whether requests count from 0
     */
    SubmissionOrder(AssemblyStore store, long patienceMs, boolean isFirstEpoch) {
        this.store = store;
        this.patienceMs = patienceMs;
        this.next = isFirstEpoch || store.nextOrdinal() > 0 ? store.nextOrdinal() : UNKNOWN;
        store.forEachGone(gone::add);
    }

    /** A group is ready and waits for its turn. */
    void add(Group group, ReadyGroups.Turn turn) {
        if (next == UNKNOWN) {
            next = group.ordinal();
        }
        waiting.computeIfAbsent(group.ordinal(), ordinal -> new ArrayList<>()).add(new Waiting(group, turn));
    }

    /** A group has left for good, so that nobody waits for it. */
    void leave(long ordinal) {
        if (ordinal >= next && gone.add(ordinal)) {
            store.putGone(ordinal);
        }
    }

    /** Groups that wait for their turn, in order. */
    List<Group> waiting() {
        return waiting.values().stream()
                .flatMap(List::stream)
                .map(Waiting::group)
                .toList();
    }

    /**
     * Hands on every group whose turn has come.
     *
     * @param nowMs on the task's activity clock
     * @return whether any was, or one is waited for since now
     */
    boolean pass(long nowMs, ReadyGroups ready) {
        long before = next;
        long blockedBeforeMs = blockedSinceMs;
        while (true) {
            while (gone.contains(next)) {
                gone.remove(next);
                store.deleteGone(next);
                next++;
            }
            Map.Entry<Long, List<Waiting>> first = waiting.firstEntry();
            if (first == null) {
                blockedSinceMs = NOT_BLOCKED;
                break;
            }
            if (first.getKey() > next && !isDeadlinePassed(nowMs, first.getKey())) {
                break;
            }
            waiting.pollFirstEntry().getValue().stream()
                    .sorted(Comparator.comparing(w -> w.group().groupId()))
                    .forEach(w -> ready.add(w.group(), w.turn()));
            next = Math.max(next, first.getKey() + 1);
            blockedSinceMs = NOT_BLOCKED;
        }
        if (next != before) {
            store.putNextOrdinal(next);
        }
        return next != before || blockedSinceMs != blockedBeforeMs;
    }

    private boolean isDeadlinePassed(long nowMs, long ordinal) {
        if (blockedSinceMs == NOT_BLOCKED) {
            blockedSinceMs = nowMs;
        }
        if (nowMs - blockedSinceMs < patienceMs) {
            return false;
        }
        LOG.warn(
                "no sample of the requests from ordinal {} up to {} has come within {} ms of activity; the batch goes on without them",
                next,
                ordinal,
                patienceMs);
        return true;
    }
}
