package dev.millrace.chaos.observe;

import com.fasterxml.jackson.annotation.JsonInclude;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

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
     * @param live the live heap; null where it was not looked at often enough
     */
    @JsonInclude(JsonInclude.Include.NON_NULL)
    public record Change(
            String member,
            int samples,
            ProcessFigures first,
            ProcessFigures last,
            @Nullable Live live) {}

    /**
     * The live heap's median in the first and in the last third of the times it was looked at.
     *
     * @param samples how many there are in all
     */
    public record Live(int samples, double firstMegabytes, double lastMegabytes) {}

    private final Map<String, List<ProcessFigures>> samples = new TreeMap<>();
    private final Map<String, List<Double>> heaps = new TreeMap<>();

    /** Adds a sample. */
    public void add(String member, ProcessFigures figures) {
        samples.computeIfAbsent(member, name -> new ArrayList<>()).add(figures);
    }

    /** Adds a look at the live heap. */
    public void add(String member, double liveHeapMegabytes) {
        heaps.computeIfAbsent(member, name -> new ArrayList<>()).add(liveHeapMegabytes);
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
                        median(all.subList(all.size() - third, all.size())),
                        live(heaps.getOrDefault(member, List.of()))));
            }
        });
        return changes;
    }

    private static @Nullable Live live(List<Double> all) {
        if (all.size() < LEAST_SAMPLES) {
            return null;
        }
        int third = Math.max(1, all.size() / 3);
        return new Live(all.size(), middle(all.subList(0, third)), middle(all.subList(all.size() - third, all.size())));
    }

    private static double middle(List<Double> all) {
        return all.stream().sorted().skip(all.size() / 2).findFirst().orElseThrow();
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
