package dev.millrace.learner.repair;

import dev.millrace.log.scan.OffsetRange;
import dev.millrace.schemas.LearnerBatch;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/** The rollouts that the batches of one epoch name, compared with the trajectories on the log. Not thread-safe. */
final class BatchMembers {
    private final String topic;
    /** The trajectory offsets that each batch needs, by partition. */
    private final Map<Long, Map<Integer, OffsetRange>> needs = new HashMap<>();
    /** The trajectory offsets on the log, by partition. */
    private final Map<Integer, OffsetRange> trajectories = new HashMap<>();

    /** The first batch that has a rollout. */
    private final Map<String, Long> batchOf = new HashMap<>();
    /** By batch, why the learner refuses it, such as a rollout that an earlier batch has. */
    private final Map<Long, String> repeats = new HashMap<>();

    /** @param topic of trajectories, for sentences */
    BatchMembers(String topic) {
        this.topic = topic;
    }

    /** Adds a batch, in log order; a second one with the same id does not change the needed offsets. */
    void add(LearnerBatch batch) {
        if (batch.getEntries().stream()
                .anyMatch(entry -> entry.getOffset() < 0 || entry.getOffset() == Long.MAX_VALUE)) {
            repeats.putIfAbsent(batch.getBatchId(), "it names an offset of " + topic + " that no topic has");
            return;
        }
        needs.putIfAbsent(batch.getBatchId(), needs(batch));
        batch.getEntries().forEach(entry -> {
            Long first = batchOf.putIfAbsent(entry.getRolloutId(), batch.getBatchId());
            if (first != null && first != batch.getBatchId()) {
                repeats.putIfAbsent(
                        batch.getBatchId(),
                        "it has rollout " + entry.getRolloutId() + ", which batch " + first
                                + " had, as where the log has lost how far the topology had read");
            }
        });
    }

    /** The trajectories that a partition holds. */
    void holds(int partition, OffsetRange range) {
        trajectories.put(partition, range);
    }

    private static Map<Integer, OffsetRange> needs(LearnerBatch batch) {
        Map<Integer, OffsetRange> needs = new HashMap<>();
        batch.getEntries()
                .forEach(entry -> needs.merge(
                        entry.getPartition(),
                        new OffsetRange(entry.getOffset(), entry.getOffset() + 1),
                        (one, other) -> new OffsetRange(
                                Math.min(one.begin(), other.begin()), Math.max(one.end(), other.end()))));
        return needs;
    }

    /** Returns why a batch on the log cannot be trained on, as a clause; empty if it can. */
    Optional<String> whyUnusable(long batch) {
        return missing(batch).or(() -> Optional.ofNullable(repeats.get(batch)));
    }

    /**
     * Returns why the learner refuses a batch regardless of the batches before it, as a clause; empty if it does not.
     */
    Optional<String> whyRefused(long batch) {
        return Optional.ofNullable(repeats.get(batch));
    }

    /** Returns the offsets that a batch needs and the log lacks, as a clause; empty if the log has all. */
    private Optional<String> missing(long batch) {
        for (Map.Entry<Integer, OffsetRange> need :
                needs.getOrDefault(batch, Map.of()).entrySet()) {
            OffsetRange there = trajectories.getOrDefault(need.getKey(), new OffsetRange(0, 0));
            if (need.getValue().begin() < there.begin() || need.getValue().end() > there.end()) {
                return Optional.of("it names offsets " + words(need.getValue()) + " of " + topic + "-" + need.getKey()
                        + ", which holds " + words(there));
            }
        }
        return Optional.empty();
    }

    private static String words(OffsetRange range) {
        return range.begin() == range.end() ? "none" : range.begin() + " to " + (range.end() - 1);
    }
}
