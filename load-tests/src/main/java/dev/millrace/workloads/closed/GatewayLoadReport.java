package dev.millrace.workloads.closed;

import dev.millrace.report.Column;
import dev.millrace.report.Report;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.workloads.Goal;
import dev.millrace.workloads.closed.GatewayBenchmark.Round;
import java.util.List;

public final class GatewayLoadReport {
    private static final List<Column<Round>> COLUMNS = List.of(
            Column.count("direct calls", Round::directCalls),
            Column.<Round>number("direct p50", 1, Round::directP50).in("ms"),
            Column.<Round>number("direct p99", 1, Round::directP99).in("ms"),
            Column.count("calls", Round::calls),
            Column.<Round>number("p50", 1, Round::p50).in("ms"),
            Column.<Round>number("p99", 1, Round::p99).in("ms"),
            Column.<Round>number("added p50", 1, Round::addedP50).in("ms"),
            Column.<Round>number("added p99", 1, Round::addedP99).in("ms"));

    private GatewayLoadReport() {}

    /** Goals are about the median of the repetitions. */
    public static Report of(GatewayBenchmark.Report of) {
        GatewayBenchmark.Plan plan = of.plan();
        return Report.of("A gateway beside direct calls", Goal.verdict(of.origin(), of.goals()))
                .madeBy(of.origin())
                .with(Section.of("Calls")
                        .noting(List.of(
                                plan.agents() + " agents, " + plan.open() + " further sessions open",
                                "engine double of " + plan.latencyMs() + " ms, pauses of " + plan.thinkMs()
                                        + " ms in the mean",
                                "agents, gateway and engine double in one process, the broker in another"))
                        .with(Table.of("", COLUMNS, of.rounds())))
                .with(Section.of("Goals").with(Goal.table(of.goals())));
    }
}
