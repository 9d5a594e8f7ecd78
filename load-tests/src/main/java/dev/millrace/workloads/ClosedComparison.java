package dev.millrace.workloads;

import dev.millrace.report.Column;
import dev.millrace.report.Report;
import dev.millrace.report.Table;
import dev.millrace.workloads.closed.ClosedReport;
import dev.millrace.workloads.closed.ClosedRun;
import java.util.List;
import java.util.Optional;

/**
 * Compares two closed loops by their gain over their own synchronous runs. A difference below the spread of the
 * synchronous runs, at least a tenth, is noise.
 */
public final class ClosedComparison {
    private record Row(ClosedRun old, ClosedRun now, double noise) {
        String verdict() {
            return Comparison.verdict(now.synchronous() ? 0 : now.speedUp() / old.speedUp() - 1, noise);
        }
    }

    private static final List<Column<Row>> COLUMNS = List.of(
            Column.text("run", row -> row.now().label()),
            Column.number("tokens/s old", 0, row -> row.old().tokensPerSecond()),
            Column.number("tokens/s new", 0, row -> row.now().tokensPerSecond()),
            Column.number("of synchronous old", 2, row -> row.old().speedUp()),
            Column.number("of synchronous new", 2, row -> row.now().speedUp()),
            Column.number("last reward old", 3, row -> row.old().lastReward()),
            Column.number("last reward new", 3, row -> row.now().lastReward()),
            Column.percent("noise", 0, Row::noise),
            Column.text("verdict", Row::verdict));

    private ClosedComparison() {}

    public static Report report(ClosedReport old, ClosedReport now) {
        double noise = runs(now).stream()
                .filter(ClosedRun::synchronous)
                .flatMap(run -> find(old, run).stream()
                        .map(before -> Math.abs(Math.log(run.tokensPerSecond() / before.tokensPerSecond()))))
                .reduce(Comparison.LEAST_NOISE, Math::max);
        List<Row> rows = runs(now).stream()
                .flatMap(run -> find(old, run).map(before -> new Row(before, run, noise)).stream())
                .toList();
        return Comparison.report(
                old.origin(), now.origin(), Table.of("", COLUMNS, rows), missing(old, now), missing(now, old));
    }

    private static List<ClosedRun> runs(ClosedReport report) {
        return report.curves().stream().flatMap(curve -> curve.runs().stream()).toList();
    }

    private static List<String> missing(ClosedReport of, ClosedReport in) {
        return runs(of).stream()
                .filter(run -> find(in, run).isEmpty())
                .map(ClosedRun::label)
                .toList();
    }

    private static Optional<ClosedRun> find(ClosedReport report, ClosedRun like) {
        return runs(report).stream()
                .filter(run -> run.settings().equals(like.settings()) && run.synchronous() == like.synchronous())
                .findFirst();
    }
}
