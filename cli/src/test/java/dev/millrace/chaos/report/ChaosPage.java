package dev.millrace.chaos.report;

import dev.millrace.chaos.ChaosResult;
import dev.millrace.chaos.FaultOutcome;
import dev.millrace.chaos.check.Check;
import dev.millrace.chaos.observe.Holdings;
import dev.millrace.report.Column;
import dev.millrace.report.Report;
import dev.millrace.report.ReportText;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Runs under faults side by side: how many faults they survived, what they lost, and how soon each part was back. */
public final class ChaosPage {
    private ChaosPage() {}

    /** Seconds of recovery, in order. */
    private record Times(String what, long faults, long survived, double[] part, double[] run) {
        static Times of(String what, List<FaultOutcome> outcomes) {
            return new Times(
                    what,
                    outcomes.size(),
                    outcomes.stream().filter(FaultOutcome::isSurvived).count(),
                    sorted(outcomes.stream().map(FaultOutcome::partSeconds).toList()),
                    sorted(outcomes.stream().map(FaultOutcome::runSeconds).toList()));
        }

        private static double[] sorted(List<Double> seconds) {
            return seconds.stream()
                    .filter(Objects::nonNull)
                    .mapToDouble(Double::doubleValue)
                    .sorted()
                    .toArray();
        }

        static double quantile(double[] sorted, double share) {
            return sorted.length == 0
                    ? Double.NaN
                    : sorted[(int) Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)];
        }
    }

    /** The tables of one run or of several, at least one. */
    public static Report of(List<ChaosResult> runs) {
        List<FaultOutcome> all =
                runs.stream().flatMap(run -> run.faults().stream()).toList();
        Report report = Report.of(
                "Faults",
                List.of(String.format(
                        Locale.ROOT,
                        "%d faults in %d %s, %d survived; %d rollouts, %d lost, %d duplicated; %s.",
                        all.size(),
                        runs.size(),
                        runs.size() == 1 ? "run" : "runs",
                        all.stream().filter(FaultOutcome::isSurvived).count(),
                        runs.stream().mapToLong(ChaosResult::rollouts).sum(),
                        runs.stream().mapToLong(ChaosResult::lost).sum(),
                        runs.stream().mapToLong(ChaosResult::duplicated).sum(),
                        runs.stream().allMatch(ChaosResult::isHeld)
                                ? "every promise was kept"
                                : "not every promise was kept")));
        report = report.with(runs(runs)).with(kinds(all)).with(parts(all)).with(checks(runs));
        List<Held> held = held(runs);
        if (!held.isEmpty()) {
            report = report.with(holdings(held));
        }
        return report;
    }

    /** The same as Markdown. */
    public static String markdown(List<ChaosResult> runs) {
        return ReportText.markdown(of(runs));
    }

    private static Section runs(List<ChaosResult> runs) {
        return Section.of("Runs")
                .with(Table.of(
                        "",
                        List.of(
                                Column.<ChaosResult>text("seed", run -> Long.toString(run.seed())),
                                Column.<ChaosResult>count("brokers", ChaosResult::brokers),
                                Column.<ChaosResult>number("minutes", 1, run -> run.seconds() / 60),
                                Column.<ChaosResult>count(
                                        "faults", run -> run.faults().size()),
                                Column.<ChaosResult>count(
                                        "survived",
                                        run -> run.faults().stream()
                                                .filter(FaultOutcome::isSurvived)
                                                .count()),
                                Column.<ChaosResult>count(
                                        "ended by itself",
                                        run -> run.departures().size()),
                                Column.<ChaosResult>count("versions", ChaosResult::versions),
                                Column.<ChaosResult>count("rollouts", ChaosResult::rollouts),
                                Column.<ChaosResult>count("lost", ChaosResult::lost),
                                Column.<ChaosResult>count("duplicated", ChaosResult::duplicated),
                                Column.<ChaosResult>number(
                                        "work lost at most, trajectory-seconds", 0, ChaosResult::trajectorySecondsLost),
                                Column.<ChaosResult>text(
                                        "promises kept",
                                        run -> run.checks().stream()
                                                        .filter(Check::isHeld)
                                                        .count()
                                                + " of " + run.checks().size()),
                                Column.<ChaosResult>text(
                                        "commit", run -> run.origin().commit())),
                        runs))
                .noting(runs.stream()
                        .flatMap(run -> Stream.concat(
                                        run.origin().lines().stream(),
                                        run.departures().stream()
                                                .map(left -> left.member() + " ended by itself, " + left.words()))
                                .map(line -> "seed " + run.seed() + ": " + line))
                        .toList());
    }

    private static Section kinds(List<FaultOutcome> all) {
        Map<String, List<FaultOutcome>> byKind = all.stream()
                .collect(Collectors.groupingBy(
                        outcome -> outcome.fault().kind().words(), TreeMap::new, Collectors.toList()));
        List<Times> rows = new ArrayList<>();
        byKind.forEach((kind, outcomes) -> rows.add(Times.of(kind, outcomes)));
        return Section.of("By kind of fault").with(Table.of("", columns("fault", false), rows));
    }

    private static Section parts(List<FaultOutcome> all) {
        Map<String, List<FaultOutcome>> byPart =
                all.stream().collect(Collectors.groupingBy(FaultOutcome::part, TreeMap::new, Collectors.toList()));
        List<Times> rows = new ArrayList<>();
        byPart.forEach((part, outcomes) -> rows.add(Times.of(part, outcomes)));
        return Section.of("By what was hit")
                .with(Table.of("", columns("part", true), rows))
                .noting(List.of(
                        "Seconds from the end of the fault, which for a process that was killed is the kill, to the first record that the"
                                + " part committed after it, and to the second version that the run made."));
    }

    private static List<Column<Times>> columns(String what, boolean hasPart) {
        List<Column<Times>> columns = new ArrayList<>(List.of(
                Column.<Times>text(what, Times::what),
                Column.<Times>count("faults", Times::faults),
                Column.<Times>count("survived", Times::survived)));
        if (hasPart) {
            columns.add(Column.number("part back p50", 1, times -> Times.quantile(times.part(), 0.5)));
            columns.add(Column.number("part back p99", 1, times -> Times.quantile(times.part(), 0.99)));
        }
        columns.add(Column.number("run back p50", 1, times -> Times.quantile(times.run(), 0.5)));
        columns.add(Column.number("run back p99", 1, times -> Times.quantile(times.run(), 0.99)));
        return columns;
    }

    private static Section checks(List<ChaosResult> runs) {
        record Row(String promise, String held, String seen) {}
        List<Row> rows = new ArrayList<>();
        for (ChaosResult run : runs) {
            for (Check check : run.checks()) {
                if (runs.size() == 1 || !check.isHeld()) {
                    rows.add(new Row(
                            check.promise(),
                            check.isHeld() ? "kept" : "BROKEN",
                            (runs.size() == 1 ? "" : "seed " + run.seed() + ": ") + check.seen()));
                }
            }
        }
        return rows.isEmpty()
                ? Section.of("")
                : Section.of("Promises")
                        .with(Table.of(
                                "",
                                List.of(
                                        Column.<Row>text("promise", Row::promise),
                                        Column.<Row>text("", Row::held),
                                        Column.<Row>text("seen", Row::seen)),
                                rows));
    }

    /** What one process of one run held. */
    private record Held(long seed, Holdings.Change change) {}

    /** Of several runs those whose live heaps were looked at. */
    private static List<Held> held(List<ChaosResult> runs) {
        return runs.stream()
                .flatMap(run -> run.holdings().stream().map(change -> new Held(run.seed(), change)))
                .filter(held -> runs.size() == 1 || held.change().live() != null)
                .toList();
    }

    private static Section holdings(List<Held> held) {
        return Section.of("What processes held, first and last third of the run")
                .with(Table.of(
                        "",
                        Arrays.asList(
                                Column.<Held>text("seed", one -> Long.toString(one.seed())),
                                Column.<Held>text("process", one -> one.change().member()),
                                Column.<Held>number(
                                        "live heap MB first", 1, one -> live(one, Holdings.Live::firstMegabytes)),
                                Column.<Held>number(
                                        "live heap MB last", 1, one -> live(one, Holdings.Live::lastMegabytes)),
                                Column.<Held>count(
                                        "MB first", one -> one.change().first().residentMegabytes()),
                                Column.<Held>count(
                                        "MB last", one -> one.change().last().residentMegabytes()),
                                Column.<Held>count(
                                        "threads first",
                                        one -> one.change().first().threads()),
                                Column.<Held>count(
                                        "threads last",
                                        one -> one.change().last().threads()),
                                Column.<Held>count(
                                        "handles first",
                                        one -> one.change().first().handles()),
                                Column.<Held>count(
                                        "handles last",
                                        one -> one.change().last().handles())),
                        held))
                .noting(List.of("Live heap is measured after a full collection; MB is resident memory."));
    }

    private static double live(Held held, ToDoubleFunction<Holdings.Live> figure) {
        Holdings.Live live = held.change().live();
        return live == null ? Double.NaN : figure.applyAsDouble(live);
    }
}
