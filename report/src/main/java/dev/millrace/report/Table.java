package dev.millrace.report;

import dev.millrace.report.Column.Heading;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * @param title empty for none
 * @param rows a value per column; null for none
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

    String shown(int row, int column) {
        return columns.get(column).format().shown(rows.get(row).get(column));
    }
}
