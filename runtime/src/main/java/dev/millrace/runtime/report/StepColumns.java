package dev.millrace.runtime.report;

import dev.millrace.report.Column;
import dev.millrace.report.Column.Heading;
import dev.millrace.report.Format;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** The columns of steps.csv: all figures of the training log, of any trainer. */
public final class StepColumns {
    private StepColumns() {}

    /** Columns for these rows: those of every run, then one per metric by its name in the log. */
    public static List<Column<StepRow>> of(List<StepRow> rows) {
        Set<String> metrics = new TreeSet<>();
        rows.forEach(row -> metrics.addAll(row.metrics().keySet()));
        List<Column<StepRow>> columns = new ArrayList<>();
        for (StepFigure figure : KnownFigures.ofEveryRun()) {
            columns.add(figure.column());
            metrics.remove(figure.key());
        }
        metrics.forEach(name -> columns.add(new Column<>(
                new Heading(name, name, "", new Format(Format.Kind.DECIMALS, 6)),
                row -> row.metrics().get(name))));
        return columns;
    }

    /** Whether these columns have a place for every metric of the rows. */
    public static boolean cover(List<Column<StepRow>> columns, List<StepRow> rows) {
        Set<String> keys =
                columns.stream().map(column -> column.heading().key()).collect(Collectors.toSet());
        return rows.stream().allMatch(row -> keys.containsAll(row.metrics().keySet()));
    }
}
