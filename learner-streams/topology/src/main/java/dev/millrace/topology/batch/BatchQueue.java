package dev.millrace.topology.batch;

import dev.millrace.topology.batch.BatchConfig.Order;
import dev.millrace.topology.task.Wait;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Queue of groups that are ready for a batch, in the configured order. Confined to one task. */
final class BatchQueue {
    /**
     * Order in which groups became ready: by trajectory offset, whole groups before short ones.
     *
     * @param offset of the last trajectory before
     * @param isShort closed by the deadline
     */
    record Turn(long offset, boolean isShort) implements Comparable<Turn> {
        private static final Comparator<Turn> ORDER =
                Comparator.comparingLong(Turn::offset).thenComparing(Turn::isShort);

        @Override
        public int compareTo(Turn other) {
            return ORDER.compare(this, other);
        }
    }

    private record Ready(Group group, Turn turn, int sequences, long tokens, long oldestVersion) {
        static Ready of(Group group, Turn turn) {
            List<Member> members = group.members();
            return new Ready(
                    group,
                    turn,
                    members.size(),
                    members.stream().mapToLong(Member::trainableTokens).sum(),
                    members.stream().mapToLong(Member::oldestVersion).min().orElseThrow());
        }
    }

    private final BatchConfig config;
    private final SubmissionOrder submission;
    /** Groups that may go into the next batch, in the configured order. */
    private final TreeSet<Ready> ready;

    private final Map<Group, Ready> byGroup = new HashMap<>();
    /** Of all ready groups. */
    private int sequences;

    private long tokens;

    /** @param patienceMs activity after which a request without samples is skipped */
    BatchQueue(BatchConfig config, AssemblyStore store, long patienceMs, boolean isFirstEpoch) {
        this.config = config;
        this.submission = new SubmissionOrder(store, patienceMs, isFirstEpoch);
        Comparator<Ready> first = switch (config.order()) {
            case COMPLETION -> Comparator.comparing(Ready::turn);
            case SUBMISSION -> Comparator.comparingLong(r -> r.group().ordinal());
            case FRESHEST ->
                Comparator.comparingLong(Ready::oldestVersion).reversed().thenComparing(Ready::turn);
        };
        ready = new TreeSet<>(first.thenComparingLong(r -> r.group().ordinal())
                .thenComparing(r -> r.group().groupId()));
    }

    void add(Group group, Turn turn) {
        if (config.order() == Order.SUBMISSION) {
            submission.add(group, turn);
        } else {
            addReady(group, turn);
        }
    }

    private void addReady(Group group, Turn turn) {
        Ready added = Ready.of(group, turn);
        ready.add(added);
        byGroup.put(group, added);
        sequences += added.sequences();
        tokens += added.tokens();
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
        return submission.pass(nowMs, this::addReady);
    }

    /**
     * The first groups that fill a batch, without removing them; empty if all groups do not fill one.
     *
     * @param atLeast number of groups to take at least
     * @param lastChance groups with a token of this version or an older one would be too stale for any later batch; they
     *     go first
     */
    List<Group> next(int atLeast, long lastChance) {
        if (!config.isEnough(sequences, tokens)) { // for most arrivals
            return List.of();
        }
        List<Group> first = new ArrayList<>();
        int taken = 0;
        long trainable = 0;
        for (Ready next : inOrder(lastChance)) {
            first.add(next.group());
            taken += next.sequences();
            trainable += next.tokens();
            if (first.size() >= atLeast && config.isEnough(taken, trainable)) {
                return first;
            }
        }
        return List.of();
    }

    private Collection<Ready> inOrder(long lastChance) {
        if (config.order() != Order.COMPLETION
                || ready.stream().noneMatch(group -> group.oldestVersion() <= lastChance)) {
            return ready;
        }
        List<Ready> lastFirst = new ArrayList<>(ready);
        lastFirst.sort(Comparator.comparing(group -> group.oldestVersion() > lastChance)); // stable
        return lastFirst;
    }

    void remove(List<Group> leaving) {
        for (Group group : leaving) {
            Ready removed = Objects.requireNonNull(byGroup.remove(group), group::groupId);
            ready.remove(removed);
            sequences -= removed.sequences();
            tokens -= removed.tokens();
        }
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
        List<Group> all = new ArrayList<>(ready.stream().map(Ready::group).toList());
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
        private record Waiting(Group group, Turn turn) {}

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
        void add(Group group, Turn turn) {
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
        boolean pass(long nowMs, BiConsumer<Group, Turn> ready) {
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
                        .forEach(w -> ready.accept(w.group(), w.turn()));
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
