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

/** Groups between being ready and being batched. Confined to one task. */
final class BatchQueue {
    private final BatchConfig config;
    private final ReadyGroups ready;
    private final SubmissionOrder submission;

    /** @param patienceMs activity after which a request that brings no samples is passed over */
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

    /** A group has left without a batch. */
    void leave(Group group) {
        if (config.order() == Order.SUBMISSION) {
            submission.leave(group.ordinal());
        }
    }

    /**
     * Lets groups pass whose turn has come.
     *
     * @param nowMs on the task's activity clock
     * @return whether any did, or one is waited for since now
     */
    boolean advance(long nowMs) {
        return submission.pass(nowMs, ready);
    }

    /**
     * The groups of the next batch; none if there is not enough.
     *
     * @param atLeast how many groups to take in any case
     * @param lastChance groups with a token of this version or an older one would be too stale for any later batch
     */
    List<Group> next(int atLeast, long lastChance) {
        return ready.first(config, atLeast, lastChance);
    }

    void remove(List<Group> groups) {
        ready.remove(groups);
    }

    /**
     * What keeps ready groups from being a batch.
     *
     * @param nextBatchId the batch that they would be
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

    /** Every group, those that wait for their turn included. */
    List<Group> all() {
        List<Group> all = new ArrayList<>(ready.all());
        all.addAll(submission.waiting());
        return all;
    }

    /**
     * Lets groups pass in the order of their ordinals: each waits until all before it have passed or are gone.
     *
     * <p>A group none of whose samples ever arrives would hold up the rest for ever; after a while it is passed over, and
     * passes on its own if it comes after all. Confined to one task.
     */
    static final class SubmissionOrder {
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
            gone.addAll(store.gone.all().keySet());
        }

        /** A group is ready and waits for its turn. */
        void add(Group group, ReadyGroups.Turn turn) {
            if (next == UNKNOWN) {
                next = group.ordinal();
            }
            waiting.computeIfAbsent(group.ordinal(), ordinal -> new ArrayList<>())
                    .add(new Waiting(group, turn));
        }

        /** A group has left for good, so that nobody waits for it. */
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
