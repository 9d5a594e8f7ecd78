package dev.millrace.report;

import dev.millrace.report.Column.Heading;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Rows under headings.
 *
 * @param title above it; empty for none
 * @param columns their heads
 * @param rows a value for each column; null where there is none
 */
public record Table(String title, List<Heading> columns, List<List<@Nullable Object>> rows) {
    public Table {
        columns = List.copyOf(columns);
        int width = columns.size();
        rows = rows.stream()
                .map(row -> Collections.unmodifiableList(new ArrayList<>(row)))
                .toList();
        rows.forEach(row -> {
            if (row.size() != width) {
                throw new IllegalArgumentException(
                        "a row needs a value for each column: values=" + row.size() + ", columns=" + width);
            }
        });
    }

    /** A row for each of {@code of}, read by the columns. */
    public static <R> Table of(String title, List<Column<R>> columns, Collection<? extends R> of) {
        return new Table(
                title,
                columns.stream().map(Column::heading).toList(),
                of.stream().map(row -> values(columns, row)).toList());
    }

    private static <R> List<@Nullable Object> values(List<Column<R>> columns, R row) {
        List<@Nullable Object> values = new ArrayList<>();
        columns.forEach(column -> values.add(column.of(row)));
        return values;
    }

    /** What a cell shows. */
    String shown(int row, int column) {
        return columns.get(column).format().shown(rows.get(row).get(column));
    }
}
