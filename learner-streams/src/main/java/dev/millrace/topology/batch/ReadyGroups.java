package dev.millrace.topology.batch;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/** Groups that wait for a batch, in the order in which they became ready. Confined to one task. */
final class ReadyGroups {

    /**
     * When a group became ready: behind which trajectory; whole groups before short ones released there.
     *
     * @param offset of the trajectory
     * @param isShort released by the deadline
     * @param ordinal settles what the others leave open
     * @param groupId settles the rest
     */
    private record Turn(long offset, boolean isShort, long ordinal, String groupId) {
        static final Comparator<Turn> ORDER = Comparator.comparingLong(Turn::offset).thenComparing(Turn::isShort)
            .thenComparingLong(Turn::ordinal).thenComparing(Turn::groupId);
    }

    private final NavigableMap<Turn, Group> groups = new TreeMap<>(Turn.ORDER);
    private int sequences;

    /** A group is complete. */
    void addComplete(Group group) {
        add(new Turn(group.lastOffset(), false, group.ordinal(), group.groupId()), group);
    }

    /** A short group was released after the trajectory at {@code afterOffset}. */
    void addShort(Group group, long afterOffset) {
        add(new Turn(afterOffset, true, group.ordinal(), group.groupId()), group);
    }

    private void add(Turn turn, Group group) {
        groups.put(turn, group);
        sequences += group.members().size();
    }

    /** Sequences of all groups that are ready. */
    int sequences() {
        return sequences;
    }

    /** The first groups that hold at least so many sequences together, or all if there are not so many. They stay. */
    List<Group> first(int wanted) {
        List<Group> first = new ArrayList<>();
        int found = 0;
        for (Group group : groups.values()) {
            if (found >= wanted) {
                break;
            }
            first.add(group);
            found += group.members().size();
        }
        return first;
    }

    /** Takes these groups out. */
    void remove(List<Group> leaving) {
        for (Map.Entry<Turn, Group> entry : List.copyOf(groups.entrySet())) {
            if (leaving.contains(entry.getValue())) {
                groups.remove(entry.getKey());
                sequences -= entry.getValue().members().size();
            }
        }
    }
}
