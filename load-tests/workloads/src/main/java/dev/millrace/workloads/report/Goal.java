package dev.millrace.workloads.report;

import dev.millrace.report.Column;
import dev.millrace.report.Table;
import java.util.List;

/**
 * Something that was to be reached, and whether it was.
 *
 * @param name what it is about
 * @param measured what was seen, with its unit
 * @param bound what was asked for
 * @param holds whether it was reached
 */
public record Goal(String name, String measured, String bound, boolean holds) {
    private static final List<Column<Goal>> COLUMNS = List.of(
            Column.text("goal", Goal::name),
            Column.text("measured", Goal::measured),
            Column.text("asked for", Goal::bound),
            Column.text("verdict", goal -> goal.holds() ? "holds" : "MISSED"));

    /** All of them. */
    public static Table table(List<Goal> goals) {
        return Table.of("", COLUMNS, goals);
    }

    /** Whether all hold, in a sentence. */
    public static String verdict(List<Goal> goals) {
        List<String> missed =
                goals.stream().filter(goal -> !goal.holds()).map(Goal::name).toList();
        return missed.isEmpty() ? "Every goal holds." : "Missed: " + String.join("; ", missed) + ".";
    }
}
