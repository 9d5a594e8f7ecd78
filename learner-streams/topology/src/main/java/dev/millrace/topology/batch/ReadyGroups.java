package dev.millrace.topology.batch;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;

/** Groups that may go into the next batch, in the configured order. Confined to one task. */
final class ReadyGroups {

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

    private final BatchConfig.Order order;
    private final TreeSet<Ready> ready;
    private final Map<Group, Ready> byGroup = new HashMap<>();
    /** Of all groups. */
    private int sequences;

    private long tokens;

    ReadyGroups(BatchConfig.Order order) {
        this.order = order;
        Comparator<Ready> first = switch (order) {
            case COMPLETION -> Comparator.comparing(Ready::turn);
            case SUBMISSION -> Comparator.comparingLong(r -> r.group().ordinal());
            case FRESHEST ->
                Comparator.comparingLong(Ready::oldestVersion).reversed().thenComparing(Ready::turn);
        };
        ready = new TreeSet<>(first.thenComparingLong(r -> r.group().ordinal())
                .thenComparing(r -> r.group().groupId()));
    }

    void add(Group group, Turn turn) {
        Ready added = Ready.of(group, turn);
        ready.add(added);
        byGroup.put(group, added);
        sequences += added.sequences();
        tokens += added.tokens();
    }

    /** Removes groups. */
    void remove(List<Group> leaving) {
        for (Group group : leaving) {
            Ready removed = Objects.requireNonNull(byGroup.remove(group), group::groupId);
            ready.remove(removed);
            sequences -= removed.sequences();
            tokens -= removed.tokens();
        }
    }

    /**
     * Returns the first groups that fill a batch, without removing them; empty if all groups do not fill one.
     *
     * @param atLeast number of groups to take at least
     * @param lastChance groups with a token of this version or an older one would be too stale for any later batch; they go
     *     first
     */
    List<Group> first(BatchConfig config, int atLeast, long lastChance) {
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
        if (order != BatchConfig.Order.COMPLETION
                || ready.stream().noneMatch(group -> group.oldestVersion() <= lastChance)) {
            return ready;
        }
        List<Ready> lastFirst = new ArrayList<>(ready);
        lastFirst.sort(Comparator.comparing(group -> group.oldestVersion() > lastChance)); // stable
        return lastFirst;
    }

    /** Every group, in order. */
    List<Group> all() {
        return ready.stream().map(Ready::group).toList();
    }
}
