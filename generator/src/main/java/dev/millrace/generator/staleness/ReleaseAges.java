package dev.millrace.generator.staleness;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;

/**
 * For how long groups have been under way since their newest release, by a monotonic clock, and from where on the rollouts of
 * each lie.
 *
 * <p>A group that was looked for and found is looked for again, each time after twice as long. Confined to admission's thread.
 */
final class ReleaseAges {

    private static final class Age {
        final int releases;
        long sinceNanos;
        long waitNanos;
        Map<TopicPartition, Long> floor;

        Age(int releases, long sinceNanos, long waitNanos, Map<TopicPartition, Long> floor) {
            this.releases = releases;
            this.sinceNanos = sinceNanos;
            this.waitNanos = waitNanos;
            this.floor = floor;
        }
    }

    private final long limitNanos;
    private final Map<String, Age> ages = new HashMap<>();
    /** Where rollouts ended before whatever was released since the last look. */
    private Map<TopicPartition, Long> floor = Map.of();

    private Map<TopicPartition, Long> ends = Map.of();

    /** @param limit a group may be under way for so long before it is looked for */
    ReleaseAges(Duration limit) {
        this.limitNanos = limit.toNanos();
    }

    /** What was released by an earlier admission has its rollouts from here on; a partition that is not there, from its beginning. */
    void begin(Map<TopicPartition, Long> keptFloor) {
        ages.clear();
        floor = keptFloor;
        ends = keptFloor;
    }

    /**
     * Looks at the groups under way.
     *
     * @return those that have been for too long
     */
    List<AdmittedGroup> overdue(Collection<AdmittedGroup> underWay, long nowNanos) {
        List<AdmittedGroup> overdue = new ArrayList<>();
        Set<String> there = new HashSet<>();
        for (AdmittedGroup group : underWay) {
            there.add(group.groupId());
            Age age = ages.get(group.groupId());
            if (age == null || age.releases != group.releases()) {
                // what was released again may have rollouts of its first release, too
                Map<TopicPartition, Long> from = age == null ? floor : age.floor;
                ages.put(group.groupId(), new Age(group.releases(), nowNanos, limitNanos, from));
            } else if (nowNanos - age.sinceNanos >= age.waitNanos) {
                overdue.add(group);
            }
        }
        ages.keySet().retainAll(there);
        floor = ends;
        return overdue;
    }

    /** Where rollouts ended, asked after the last look. A log that has lost its end has older rollouts further down than they were. */
    void ended(Map<TopicPartition, Long> rolloutEnds) {
        boolean hasLost = ends.entrySet().stream()
                .anyMatch(end -> rolloutEnds.getOrDefault(end.getKey(), Long.MAX_VALUE) < end.getValue());
        if (hasLost) {
            floor = lower(floor, rolloutEnds);
            ages.values().forEach(age -> age.floor = lower(age.floor, rolloutEnds));
        }
        ends = rolloutEnds;
    }

    private static Map<TopicPartition, Long> lower(Map<TopicPartition, Long> of, Map<TopicPartition, Long> bound) {
        Map<TopicPartition, Long> lower = new HashMap<>();
        of.forEach((partition, offset) ->
                lower.put(partition, Math.min(offset, bound.getOrDefault(partition, Long.MAX_VALUE))));
        return lower;
    }

    /** A group was looked for and there is no more to be done about it now. */
    void looked(String groupId, boolean isFound, long nowNanos) {
        Age age = ages.get(groupId);
        if (age != null) {
            age.sinceNanos = nowNanos;
            age.waitNanos = isFound ? Math.min(age.waitNanos * 2, limitNanos << 10) : limitNanos;
        }
    }

    /** From where on the rollouts of a group lie; a partition that is not there, from its beginning. */
    Map<TopicPartition, Long> floorOf(String groupId) {
        Age age = ages.get(groupId);
        return age == null ? Map.of() : age.floor;
    }

    /** From where on the rollouts of all that is under way lie, for the next admission. */
    Map<TopicPartition, Long> floor() {
        Map<TopicPartition, Long> lowest = new HashMap<>(floor);
        Set<Map<TopicPartition, Long>> floors = new HashSet<>();
        ages.values().forEach(age -> floors.add(age.floor));
        for (Map<TopicPartition, Long> other : floors) {
            lowest.keySet().retainAll(other.keySet());
            other.forEach((partition, offset) -> lowest.computeIfPresent(partition, (p, low) -> Math.min(low, offset)));
        }
        return lowest;
    }
}
