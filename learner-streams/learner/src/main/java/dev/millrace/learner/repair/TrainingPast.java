package dev.millrace.learner.repair;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TrainingStep;
import java.util.Map;
import java.util.TreeMap;

/** What the training log and the batches say of one epoch. Not thread-safe. */
final class TrainingPast {
    private record Step(long version, boolean starved, int rollouts) {}

    private final TreeMap<Long, Step> steps = new TreeMap<>();
    private final TreeMap<Long, Integer> batches = new TreeMap<>();
    private final TreeMap<Long, Long> offsets = new TreeMap<>();

    void step(TrainingStep step) {
        steps.putIfAbsent(
                step.getBatchId(),
                new Step(step.getVersion(), step.getStarved(), step.getRolloutsTrained() + step.getRolloutsMasked()));
    }

    void batch(long batchId, int rollouts, long offset) {
        batches.putIfAbsent(batchId, rollouts);
        offsets.putIfAbsent(batchId, offset);
    }

    boolean isEmpty() {
        return steps.isEmpty();
    }

    /** Newest version that a step made; -1 without one. */
    long newestVersion() {
        return steps.values().stream().mapToLong(Step::version).max().orElse(-1);
    }

    /** Last batch that a step consumed; -1 without one. */
    long lastBatch() {
        return steps.isEmpty() ? -1 : steps.lastKey();
    }

    /** The batch that the learner waits for: behind the newest version's, and behind those that were starved at that version. */
    long due(PolicyVersion tip) {
        long due = tip.getBatchId() + 1;
        while (steps.containsKey(due)
                && steps.get(due).starved()
                && steps.get(due).version() == tip.getVersion()) {
            due++;
        }
        return due;
    }

    /** The first batch on the log with this id or a later one; -1 without one. */
    long firstFrom(long batchId) {
        Long found = batches.ceilingKey(batchId);
        return found == null ? -1 : found;
    }

    /** Where a batch is on the log; it must be there. */
    long offset(long batchId) {
        Long offset = offsets.get(batchId);
        if (offset == null) {
            throw new IllegalArgumentException("batch " + batchId + " is not on the log");
        }
        return offset;
    }

    /** The offset behind the last batch on the log with this id or an earlier one; 0 without one. */
    long offsetBehind(long batchId) {
        Map.Entry<Long, Long> last = offsets.floorEntry(batchId);
        return last == null ? 0 : last.getValue() + 1;
    }

    boolean hasBatches(long from, long to) {
        return batches.subMap(from, true, to, true).size() == to - from + 1;
    }

    /** Rollouts of a batch that is lost: as many as others have. */
    int usualRollouts() {
        return batches.isEmpty()
                ? steps.values().stream().mapToInt(Step::rollouts).max().orElse(0)
                : batches.values().stream().mapToInt(Integer::intValue).max().orElse(0);
    }

    /** Rollouts of the steps that made later versions than this one. */
    long rolloutsBehind(long version) {
        return steps.values().stream()
                .filter(step -> step.version() > version)
                .mapToLong(Step::rollouts)
                .sum();
    }
}
