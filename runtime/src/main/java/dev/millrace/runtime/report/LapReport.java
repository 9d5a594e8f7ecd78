package dev.millrace.runtime.report;

import dev.millrace.audit.trace.Laps;
import dev.millrace.audit.trace.Laps.Hop;
import dev.millrace.audit.trace.Laps.Lap;
import dev.millrace.report.Column;
import dev.millrace.report.Report;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Where a run's batches wait and what its steps cost, for the command and the page. */
public final class LapReport {
    private static final int NAMED = 3;

    private static final String NOT_MEASURED =
            "The cost of a step is unknown: only train records it, in work.json of its folder, from the second step"
                    + " on. Other roles have the meters at --metrics-port.";

    private LapReport() {}

    /**
     * @param laps with a lap at least
     * @param work of the run's process; empty if unknown, which the report says
     */
    public static Report of(Laps laps, Optional<StepWork> work) {
        Section way = Section.of("")
                .with(Table.of("", hops(laps), List.of(Hop.values())))
                .noting(summary(laps));
        Report report = Report.of("Lap", List.of()).with(way);
        if (work.isEmpty()) {
            return report.with(Section.of("").noting(List.of(NOT_MEASURED)));
        }
        Report whole = report.with(process(work.get()));
        return work.get().broker().isEmpty() ? whole : whole.with(broker(work.get()));
    }

    private static List<Column<Hop>> hops(Laps laps) {
        double all = laps.laps().stream().mapToLong(Lap::total).sum();
        return List.of(
                Column.text("hop", LapReport::name),
                Column.<Hop>count(
                                "p50",
                                hop -> laps.quantile(0.5, lap -> lap.millis().get(hop)))
                        .in("ms"),
                Column.<Hop>count(
                                "p99",
                                hop -> laps.quantile(0.99, lap -> lap.millis().get(hop)))
                        .in("ms"),
                Column.percent("share", 0, hop -> millis(laps, hop) / all),
                Column.text("", Hop::what));
    }

    private static String name(Hop hop) {
        return hop.key().replace('_', '-');
    }

    private static long millis(Laps laps, Hop hop) {
        return laps.laps().stream().mapToLong(lap -> lap.millis().get(hop)).sum();
    }

    private static List<String> summary(Laps laps) {
        List<Lap> each = laps.laps();
        long median = laps.quantile(0.5, Lap::total);
        List<String> sentences = new ArrayList<>();
        sentences.add(String.format(
                Locale.ROOT,
                "%d laps, batches %d to %d. A lap takes %d ms in the median, %d ms at the 99th percentile.",
                each.size(),
                each.get(0).batchId(),
                each.get(each.size() - 1).batchId(),
                median,
                laps.quantile(0.99, Lap::total)));
        sentences.add("The longest hops of the critical path are "
                + Stream.of(Hop.values())
                        .sorted(Comparator.comparingLong((Hop hop) -> -millis(laps, hop)))
                        .limit(NAMED)
                        .map(LapReport::name)
                        .collect(Collectors.joining(", "))
                + ".");
        if (each.size() > 1) {
            sentences.add(String.format(
                    Locale.ROOT,
                    "A step is made every %.0f ms, so %.1f batches are in flight.",
                    laps.millisPerStep(),
                    median / laps.millisPerStep()));
        }
        if (laps.incomplete() > 0) {
            sentences.add("Steps with missing records, left out: " + laps.incomplete() + ".");
        }
        return sentences;
    }

    private static Section process(StepWork work) {
        Set<String> names = Stream.of(work.processorMs(), work.requests(), work.commitMs())
                .flatMap(part -> part.keySet().stream())
                .collect(Collectors.toSet());
        List<String> rows = names.stream()
                .sorted(Comparator.comparingDouble((String name) -> -value(work.processorMs(), name, 0))
                        .thenComparing(Comparator.naturalOrder()))
                .toList();
        List<Column<String>> columns = List.of(
                Column.text("threads", name -> name),
                Column.<String>number("processor", 1, name -> value(work.processorMs(), name, Double.NaN))
                        .in("ms"),
                Column.number("requests", 1, name -> value(work.requests(), name, Double.NaN)),
                Column.<String>number("in commits", 1, name -> value(work.commitMs(), name, Double.NaN))
                        .in("ms"));
        return Section.of("Work per step, over " + work.steps() + " steps").with(Table.of("", columns, rows));
    }

    private static Section broker(StepWork work) {
        return Section.of("Requests to the embedded broker, and its flushes to the disk")
                .with(Table.of(
                        "",
                        List.of(
                                Column.text("request", Map.Entry<String, Double>::getKey),
                                Column.number("per step", 1, Map.Entry::getValue)),
                        work.broker().entrySet()));
    }

    private static double value(Map<String, Double> of, String name, double without) {
        return of.getOrDefault(name, without);
    }
}
