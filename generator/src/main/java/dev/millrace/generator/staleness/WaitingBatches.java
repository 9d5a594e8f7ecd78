package dev.millrace.generator.staleness;

import dev.millrace.schemas.rollout.SampleName;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;

/**
 * Batches that wait for their step, each with its samples, until they are consumed in the order of their ids.
 *
 * <p>Which are is told by the newest version's manifest, and by steps that were starved. Confined to admission's thread.
 */
final class WaitingBatches {
    private static final int MAX_WAITING_BATCHES = 4096;

    private record WaitingBatch(long offset, Set<SampleName> samples) {}

    private final TreeMap<Long, WaitingBatch> waiting = new TreeMap<>();
    /** Samples of batches that wait. */
    private final Set<SampleName> batched = new HashSet<>();

    private final TreeSet<Long> starved = new TreeSet<>();
    private long consumedThrough;
    private long settledThrough;

    /**
     * @param settledThrough the last batch that was consumed; -1 if none was
     * @param starved batches that made no version, and of which it is not known yet what was in them
     */
    WaitingBatches(long settledThrough, Collection<Long> starved) {
        this.settledThrough = settledThrough;
        this.consumedThrough = settledThrough;
        this.starved.addAll(starved);
    }

    /** Whether a sample is in a batch that waits. */
    boolean has(SampleName sample) {
        return batched.contains(sample);
    }

    /** Whether a batch is neither consumed nor far ahead, where nobody makes one. */
    boolean takes(long batchId) {
        return batchId > settledThrough && waiting.size() < MAX_WAITING_BATCHES;
    }

    /**
     * A batch that waits from now on.
     *
     * @return false if one of its id waits already: one of the two is a copy or a forgery, and the samples of both are consumed with it
     */
    boolean add(long batchId, long offset, Set<SampleName> samples) {
        batched.addAll(samples);
        WaitingBatch known = waiting.get(batchId);
        if (known != null) {
            known.samples().addAll(samples);
            return false;
        }
        waiting.put(batchId, new WaitingBatch(offset, new HashSet<>(samples)));
        return true;
    }

    /** A batch was consumed without making a version. */
    void starved(long batchId) {
        if (batchId > settledThrough && starved.size() < MAX_WAITING_BATCHES) {
            starved.add(batchId);
        }
    }

    /** Batches up to this one are consumed, as the newest manifest says. */
    void consumedThrough(long batchId) {
        consumedThrough = Math.max(consumedThrough, batchId);
    }

    /** @param consumed takes each sample of the batches that wait no longer */
    void settle(Consumer<SampleName> consumed) {
        while (!waiting.isEmpty() && (waiting.firstKey() <= consumedThrough || starved.contains(waiting.firstKey()))) {
            Map.Entry<Long, WaitingBatch> batch = waiting.pollFirstEntry();
            settledThrough = batch.getKey();
            starved.headSet(settledThrough, true).clear();
            batched.removeAll(batch.getValue().samples());
            batch.getValue().samples().forEach(consumed);
        }
    }

    /** The last batch whose samples are settled. */
    long settledThrough() {
        return settledThrough;
    }

    /** Those that made no version, and of which it is not known yet what was in them; lowest first. */
    List<Long> starved() {
        return List.copyOf(starved);
    }

    /** Where the first batch lies that waits for its step: a restart must read on from there. */
    OptionalLong firstOffset() {
        return waiting.values().stream().mapToLong(WaitingBatch::offset).min();
    }
}
