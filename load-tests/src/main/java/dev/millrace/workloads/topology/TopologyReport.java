package dev.millrace.workloads.topology;

import dev.millrace.report.Column;
import dev.millrace.report.Report;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.workloads.Goal;
import dev.millrace.workloads.topology.Throughput.Result;
import java.util.List;

/** The topology's figures as a report. */
public final class TopologyReport {
    private static final List<Column<Result>> COLUMNS = List.of(
            Column.text("case", r -> r.of().label()),
            Column.<Result>text("copy", r -> r.copyMegabytes().range(0)).in("MB/s"),
            Column.<Result>text("topology", r -> r.megabytes().range(0)).in("MB/s"),
            Column.number("rollouts/s", 0, r -> r.rollouts().median()),
            Column.number("M tokens/s", 2, r -> r.tokens().median() / 1e6),
            Column.text("of the copy", r -> r.ratio().range(2)),
            Column.text("by processor time", r -> r.processorRatio().range(2)),
            Column.text("written per byte", r -> r.bytesWritten().range(2)));

    private TopologyReport() {}

    /** The report; a range is the median, and in brackets the least and the largest. */
    public static Report of(TopologyBenchmark.Report of) {
        return Report.of("The topology against a raw copy", Goal.verdict(of.origin(), of.goals()))
                .madeBy(of.origin())
                .with(Section.of("Throughput").with(Table.of("", COLUMNS, of.throughput())))
                .with(Section.of("Goals").with(Goal.table(of.goals())));
    }
}
