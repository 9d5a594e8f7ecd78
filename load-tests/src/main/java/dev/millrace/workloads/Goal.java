package dev.millrace.workloads;

import dev.millrace.report.Column;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.Table;
import java.util.List;
import java.util.stream.Stream;

/** A goal and whether the measurement meets it. */
public record Goal(String name, String measured, String bound, boolean holds) {
    private static final List<Column<Goal>> COLUMNS = List.of(
            Column.text("goal", Goal::name),
            Column.text("measured", Goal::measured),
            Column.text("asked for", Goal::bound),
            Column.text("verdict", goal -> goal.holds() ? "holds" : "MISSED"));

    public static Table table(List<Goal> goals) {
        return Table.of("", COLUMNS, goals);
    }

    /** Whether all hold, after a warning if the machine was busy. */
    public static List<String> verdict(ReportOrigin origin, List<Goal> goals) {
        List<String> missed =
                goals.stream().filter(goal -> !goal.holds()).map(Goal::name).toList();
        return Stream.concat(
                        origin.busy().stream(),
                        Stream.of(
                                missed.isEmpty() ? "Every goal holds." : "Missed: " + String.join("; ", missed) + "."))
                .toList();
    }
}
