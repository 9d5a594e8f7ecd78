package dev.millrace.chaos.observe;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.ToLongFunction;

/**
 * What each process held in the course of the run: samples of those that had been there long enough to have settled.
 *
 * <p>Owned by one thread.
 */
public final class Holdings {
    private static final int LEAST_SAMPLES = 4;

    /**
     * A member's median in the first and in the last third of the samples.
     *
     * @param samples how many there are in all
     */
    public record Change(String member, int samples, ProcessFigures first, ProcessFigures last) {}

    private final Map<String, List<ProcessFigures>> samples = new TreeMap<>();

    /** Adds a sample. */
    public void add(String member, ProcessFigures figures) {
        samples.computeIfAbsent(member, name -> new ArrayList<>()).add(figures);
    }

    /** By member, of those with enough samples. */
    public List<Change> changes() {
        List<Change> changes = new ArrayList<>();
        samples.forEach((member, all) -> {
            if (all.size() >= LEAST_SAMPLES) {
                int third = Math.max(1, all.size() / 3);
                changes.add(new Change(
                        member,
                        all.size(),
                        median(all.subList(0, third)),
                        median(all.subList(all.size() - third, all.size()))));
            }
        });
        return changes;
    }

    private static ProcessFigures median(List<ProcessFigures> all) {
        return new ProcessFigures(
                median(all, ProcessFigures::residentMegabytes),
                median(all, ProcessFigures::threads),
                median(all, ProcessFigures::handles));
    }

    private static long median(List<ProcessFigures> all, ToLongFunction<ProcessFigures> value) {
        long[] sorted = all.stream().mapToLong(value).toArray();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }
}
