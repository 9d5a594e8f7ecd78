package dev.millrace.workloads.topology;

import dev.millrace.report.Column;
import dev.millrace.report.Report;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.workloads.Goal;
import dev.millrace.workloads.topology.ReplayBenchmark.Result;
import java.util.List;

/** The rates of replays beside the live topology as a report. */
public final class ReplayRateReport {
    private static final List<Column<Result>> COLUMNS = List.of(
            Column.count("tokens", Result::responseTokens),
            Column.count("rollouts", Result::rollouts),
            Column.<Result>number("topology", 0, r -> r.topology().median()).in("rollouts/s"),
            Column.<Result>number("as recorded", 0, r -> r.asRecorded().median())
                    .in("rollouts/s"),
            Column.<Result>number("corrections", 0, r -> r.corrections().median())
                    .in("rollouts/s"),
            Column.<Result>number(
                            "three corrections", 0, r -> r.threeCorrections().median())
                    .in("rollouts/s"),
            Column.text("as recorded : topology", r -> r.ratios().asRecorded().range(2)),
            Column.text("corrections : topology", r -> r.ratios().corrections().range(2)),
            Column.text("three : topology", r -> r.ratios().threeCorrections().range(2)),
            Column.<Result>number("heap", 0, r -> r.heapMegabytes().max()).in("MB"));

    private ReplayRateReport() {}

    /** The report; a range is the median, and in brackets the least and the largest. */
    public static Report of(ReplayBenchmark.Report of) {
        return Report.of("Replays beside the live topology", Goal.verdict(of.origin(), of.goals()))
                .madeBy(of.origin())
                .with(Section.of("Rates")
                        .noting(List.of(of.threads() + " threads"))
                        .with(Table.of("", COLUMNS, of.results())))
                .with(Section.of("Goals").with(Goal.table(of.goals())));
    }
}
