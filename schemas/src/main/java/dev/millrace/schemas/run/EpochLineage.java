package dev.millrace.schemas.run;

import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Where an epoch of a run comes from: the places on the log at which it began, and the versions from which it and its
 * ancestors went another way.
 *
 * <p>Records before the beginning are history: nobody of this epoch reads, counts or refuses them. Of the older epochs'
 * versions those are the policy's past that lie before the branch: version 3 of epoch 0 is version 3 in an epoch that went
 * on from version 5 of epoch 0, and version 7 of epoch 0 is not.
 *
 * @param beganAt end of each partition when the epoch began, by {@code topic-partition}; empty for a run's first epoch
 * @param ancestors the parent first, then the parent's parent; empty for a run's first epoch
 */
public record EpochLineage(Map<String, Long> beganAt, List<Ancestor> ancestors) {
    /** Of a run's first epoch, which begins where its topics do. */
    public static final EpochLineage FIRST = new EpochLineage(Map.of(), List.of());

    /**
     * A version that an epoch continued from.
     *
     * @param epoch whose version it is
     * @param version with which the younger epoch begins
     * @param weightsSha256 identity of its weights
     */
    public record Ancestor(int epoch, long version, String weightsSha256) {}

    public EpochLineage {
        beganAt = Map.copyOf(beganAt);
        ancestors = List.copyOf(ancestors);
    }

    /** The version that the epoch began with; empty for a run's first epoch. */
    public Optional<Ancestor> parent() {
        return ancestors.stream().findFirst();
    }

    /** Of the parent, for those who look at its versions. */
    public EpochLineage ofParent() {
        return new EpochLineage(Map.of(), ancestors.isEmpty() ? ancestors : ancestors.subList(1, ancestors.size()));
    }

    /** First offset of a partition that can be this epoch's. */
    public long beginning(String topic, int partition) {
        return beganAt.getOrDefault(topic + "-" + partition, 0L);
    }

    /** Whether a record lies before the epoch's beginning. */
    public boolean isHistory(String topic, int partition, long offset) {
        return offset < beginning(topic, partition);
    }

    /** Whether an older epoch's version is the policy's past in this epoch; its own first version takes the parent's place. */
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
