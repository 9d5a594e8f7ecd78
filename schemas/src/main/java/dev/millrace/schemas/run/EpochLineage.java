package dev.millrace.schemas.run;

import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Lineage of an epoch: the log positions at which it began, and the versions from which it and its ancestors branched.
 *
 * <p>Records before the beginning are history: this epoch does not read, count or refuse them. It inherits older
 * epochs' versions before the branch: version 3 of epoch 0 is version 3 in an epoch that branched from version 5 of
 * epoch 0, and version 7 of epoch 0 is not.
 *
 * @param beganAt end of each partition when the epoch began, by {@code topic-partition}; empty for a run's first epoch
 * @param ancestors the parent first, then the parent's parent; empty for a run's first epoch
 */
public record EpochLineage(Map<String, Long> beganAt, List<Ancestor> ancestors) {
    /** Lineage of a run's first epoch, which begins with its topics. */
    public static final EpochLineage FIRST = new EpochLineage(Map.of(), List.of());

    /** A version from which an epoch continued. */
    public record Ancestor(int epoch, long version, String weightsSha256) {}

    public EpochLineage {
        beganAt = Map.copyOf(beganAt);
        ancestors = List.copyOf(ancestors);
    }

    /** The version that the epoch began with; empty for a run's first epoch. */
    public Optional<Ancestor> parent() {
        return ancestors.stream().findFirst();
    }

    /** Lineage of the parent, to read its versions. */
    public EpochLineage ofParent() {
        return new EpochLineage(Map.of(), ancestors.isEmpty() ? ancestors : ancestors.subList(1, ancestors.size()));
    }

    /** First offset of this epoch in a partition. */
    public long beginning(String topic, int partition) {
        return beganAt.getOrDefault(topic + "-" + partition, 0L);
    }

    /** Returns whether a record is before the epoch's beginning. */
    public boolean isHistory(String topic, int partition, long offset) {
        return offset < beginning(topic, partition);
    }

    /** Returns whether this epoch inherits an older epoch's version; its own first version replaces the parent's. */
    public boolean inherits(int epoch, long version) {
        long before = Long.MAX_VALUE;
        for (Ancestor ancestor : ancestors) {
            before = Math.min(before, ancestor.version());
            if (ancestor.epoch() == epoch) {
                return version < before;
            }
        }
        return false;
    }
}
