package dev.millrace.stages;

import dev.millrace.corrections.advantage.TrackedBaseline;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageFacts.TrackedValue;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.RecordedBaseline;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;

/**
 * Per-key state of an algorithm's advantage between batches.
 *
 * <p>A batch is decided with the baselines from before it; then its rewards update the figures of its keys. The same
 * batches in the same order give the same memory, bit for bit. Keeps at most {@value #MAX_KEYS} keys and evicts the
 * least recently updated, within a batch in the order of names. Confined to one thread.
 */
public final class BaselineMemory {
    public static final int MAX_KEYS = 100_000;

    private static final Comparator<Map.Entry<String, Kept>> OLDEST_FIRST = Comparator.comparingLong(
                    (Map.Entry<String, Kept> entry) -> entry.getValue().batchId())
            .thenComparing(Map.Entry::getKey);

    /**
     * Figures of a key, immutable.
     *
     * @param version at which that batch's step was expected to start
     */
    public record Kept(long batchId, long version, List<Double> figures) {
        public Kept {
            figures = List.copyOf(figures);
        }

        private double[] array() {
            return figures.stream().mapToDouble(Double::doubleValue).toArray();
        }
    }

    /**
     * Changes by a batch.
     *
     * @param forgotten evicted keys, oldest first
     * @param added how many of the updated were new
     */
    public record Update(Map<String, Kept> updated, List<String> forgotten, int added) {}

    private final TrackedBaseline rule;
    private final int maxKeys;
    private final Map<String, Kept> kept = new HashMap<>();
    private final TreeSet<Map.Entry<String, Kept>> byAge = new TreeSet<>(OLDEST_FIRST);

    public BaselineMemory(TrackedBaseline rule) {
        this(rule, MAX_KEYS);
    }

    BaselineMemory(TrackedBaseline rule, int maxKeys) {
        this.rule = rule;
        this.maxKeys = maxKeys;
    }

    /** Returns the empty memory of an algorithm; empty if its advantage has no memory. */
    public static Optional<BaselineMemory> of(Algorithm algorithm) {
        return algorithm.advantage() instanceof TrackedBaseline tracked
                ? Optional.of(new BaselineMemory(tracked))
                : Optional.empty();
    }

    public int size() {
        return kept.size();
    }

    /** The kind of advantage that the figures are of. */
    public String kind() {
        return rule.name();
    }

    /** The facts of a batch with the baselines that it is decided with. */
    public StageFacts before(StageFacts facts) {
        List<TrackedValue> baselines = new ArrayList<>();
        for (String key : facts.keys(rule.per())) {
            Kept of = kept.get(key);
            baselines.add(new TrackedValue(key, rule.baseline(of == null ? rule.initial() : of.array())));
        }
        return facts.toBuilder().baselines(baselines).build();
    }

    /** Updates the memory with a batch that was decided. */
    public Update after(long batchId, StageFacts facts) {
        return after(batchId, facts.version(), facts.keys(rule.per()), facts.rewards());
    }

    /** The same with a batch as the log has it; one whose advantage kept nothing changes nothing. */
    public Update after(LearnerBatch batch) {
        List<String> keys = new ArrayList<>();
        for (BatchEntry entry : batch.getEntries()) {
            if (entry.getBaseline() != null) {
                keys.add(entry.getBaseline().getKey());
            }
        }
        return keys.size() < batch.getEntries().size()
                ? new Update(Map.of(), List.of(), 0)
                : after(
                        batch.getBatchId(),
                        batch.getExpectedVersion(),
                        keys,
                        batch.getEntries().stream()
                                .mapToDouble(BatchEntry::getReward)
                                .toArray());
    }

    private Update after(long batchId, long version, List<String> keys, double[] rewards) {
        Map<String, List<Double>> byKey = new LinkedHashMap<>();
        for (int s = 0; s < rewards.length; s++) {
            byKey.computeIfAbsent(keys.get(s), key -> new ArrayList<>()).add(rewards[s]);
        }
        Map<String, Kept> updated = new LinkedHashMap<>();
        int before = kept.size();
        byKey.forEach((key, ofKey) -> {
            Kept of = kept.get(key);
            double[] figures = rule.updated(
                    of == null ? rule.initial() : of.array(),
                    ofKey.stream().mapToDouble(Double::doubleValue).toArray(),
                    of == null ? 0 : Math.max(0, version - of.version()));
            List<Double> boxed = new ArrayList<>();
            for (double figure : figures) {
                boxed.add(figure);
            }
            updated.put(key, new Kept(batchId, version, boxed));
        });
        updated.forEach(this::put);
        int added = kept.size() - before;
        List<String> forgotten = new ArrayList<>();
        while (kept.size() > maxKeys) {
            String oldest = byAge.pollFirst().getKey();
            kept.remove(oldest);
            updated.remove(oldest);
            forgotten.add(oldest);
        }
        return new Update(updated, forgotten, added);
    }

    public void put(String key, Kept of) {
        Kept before = kept.put(key, of);
        if (before != null) {
            byAge.remove(Map.entry(key, before));
        }
        byAge.add(Map.entry(key, of));
    }

    /** A baseline as a batch records it. */
    static RecordedBaseline recorded(TrackedValue of) {
        return new RecordedBaseline(of.key(), of.value());
    }

    /** Adds the baselines that a batch was decided with; nothing if its advantage kept none. */
    public static void addRecorded(StageFacts.Builder facts, List<BatchEntry> entries) {
        List<TrackedValue> baselines = new ArrayList<>();
        for (BatchEntry entry : entries) {
            RecordedBaseline of = entry.getBaseline();
            if (of == null) {
                return;
            }
            baselines.add(new TrackedValue(of.getKey(), of.getValue()));
        }
        facts.baselines(baselines);
    }
}
