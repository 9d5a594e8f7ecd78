package dev.millrace.topology.batch;

import dev.millrace.topology.batch.BatchConfig.Order;
import dev.millrace.topology.batch.ReadyGroups.Turn;
import dev.millrace.topology.task.Wait;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Queue of groups that are ready for a batch. Confined to one task. */
final class BatchQueue {
    private final BatchConfig config;
    private final ReadyGroups ready;
    private final SubmissionOrder submission;

    /** @param patienceMs activity after which a request without samples is skipped */
    BatchQueue(BatchConfig config, AssemblyStore store, long patienceMs, boolean isFirstEpoch) {
        this.config = config;
        this.ready = new ReadyGroups(config.order());
        this.submission = new SubmissionOrder(store, patienceMs, isFirstEpoch);
    }

    void add(Group group, Turn turn) {
        if (config.order() == Order.SUBMISSION) {
            submission.add(group, turn);
        } else {
            ready.add(group, turn);
        }
    }

    /** Records a group that left without a batch. */
    void leave(Group group) {
        if (config.order() == Order.SUBMISSION) {
            submission.leave(group.ordinal());
        }
    }

    /**
     * Moves groups whose turn has come to the ready ones.
     *
     * @param nowMs current time of the activity clock
     * @return whether a group moved, or the group waited for changed
     */
    boolean advance(long nowMs) {
        return submission.pass(nowMs, ready);
    }

    /**
     * The groups of the next batch; empty if there are too few.
     *
     * @param atLeast number of groups to take at least
     * @param lastChance groups with a token of this version or an older one would be too stale for any later batch
     */
    List<Group> next(int atLeast, long lastChance) {
        return ready.first(config, atLeast, lastChance);
    }

    void remove(List<Group> groups) {
        ready.remove(groups);
    }

    /**
     * Why ready groups are not in a batch.
     *
     * @param nextBatchId id of the next batch
     */
    List<Wait> waits(int partition, long nextBatchId) {
        List<Group> all = all();
        if (all.isEmpty()) {
            return List.of();
        }
        long sequences = all.stream().mapToLong(group -> group.members().size()).sum();
        return List.of(new Wait(
                "queue",
                partition,
                nextBatchId,
                "batch " + nextBatchId + " is not cut: " + all.size()
                        + " groups of " + sequences + " sequences are ready, a batch takes "
                        + (config.tokens() > 0
                                ? config.tokens() + " trainable tokens"
                                : config.sequences() + " sequences")
                        + (config.order() == Order.SUBMISSION ? " in the order of submission" : "")
                        + (config.maxOutstanding() > 0
                                ? ", and at most " + config.maxOutstanding() + " batches may wait for the learner"
                                : "")));
    }

    /** Every group, including those that wait for their turn. */
    List<Group> all() {
        List<Group> all = new ArrayList<>(ready.all());
        all.addAll(submission.waiting());
        return all;
    }

    /**
     * Orders groups by ordinal: each waits until all earlier ones have passed or left.
     *
     * <p>A group without any sample is skipped after a time, and passes alone if it arrives later. Confined to one task.
     */
    static final class SubmissionOrder {
        private static final Logger LOG = LoggerFactory.getLogger(SubmissionOrder.class);
        private static final long NOT_BLOCKED = -1;
        /** Until the first ready group of a later epoch, whose ordinals do not start at 0. */
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
         * @param patienceMs activity after which a missing group is skipped
         * @param isFirstEpoch whether requests count from 0
         */
        SubmissionOrder(AssemblyStore store, long patienceMs, boolean isFirstEpoch) {
            this.store = store;
            this.patienceMs = patienceMs;
            this.next = isFirstEpoch || store.nextOrdinal() > 0 ? store.nextOrdinal() : UNKNOWN;
            gone.addAll(store.gone.all().keySet());
        }

        /** Adds a ready group, which waits for its turn. */
        void add(Group group, ReadyGroups.Turn turn) {
            if (next == UNKNOWN) {
                next = group.ordinal();
            }
            waiting.computeIfAbsent(group.ordinal(), ordinal -> new ArrayList<>())
                    .add(new Waiting(group, turn));
        }

        /** Records a group that left, so that later ones do not wait for it. */
        void leave(long ordinal) {
            if (ordinal >= next && gone.add(ordinal)) {
                store.gone.put(ordinal, 0L);
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
         * Moves every group whose turn has come to the ready ones.
         *
         * @param nowMs current time of the activity clock
         * @return whether a group moved, or the group waited for changed
         */
        boolean pass(long nowMs, ReadyGroups ready) {
            long before = next;
            long blockedBeforeMs = blockedSinceMs;
            while (true) {
                while (gone.contains(next)) {
                    gone.remove(next);
                    store.gone.delete(next);
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
                    "no sample of the requests from ordinal {} up to {} has come within {} ms of activity; assembly continues without them",
                    next,
                    ordinal,
                    patienceMs);
            return true;
        }
    }
}
