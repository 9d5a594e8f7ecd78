package dev.millrace.report;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * A table in characters: aligned columns, numbers from the right, {@value Format#ABSENT} where there is no value.
 *
 * <p>On a terminal headings go over as many lines as they need, and a table that is wider than the screen goes on below itself,
 * with its first column again. As Markdown a row is one line.
 */
public final class TableText {
    private static final String GAP = "  ";
    /** A heading is not broken below so many characters, where words allow. */
    private static final int HEADING = 9;

    private final Table table;
    private final List<List<String>> heads = new ArrayList<>();
    private final int[] widths;

    private TableText(Table table) {
        this.table = table;
        this.widths = new int[table.columns().size()];
        for (int c = 0; c < widths.length; c++) {
            int body = 0;
            for (int row = 0; row < table.rows().size(); row++) {
                body = Math.max(body, table.shown(row, c).length());
            }
            List<String> head = Lines.broken(table.columns().get(c).title(), Math.max(body, HEADING));
            heads.add(head);
            widths[c] =
                    Math.max(body, head.stream().mapToInt(String::length).max().orElse(0));
        }
    }

    /** For a terminal of {@value Lines#WIDTH} columns. */
    public static List<String> lines(Table table) {
        return lines(table, Lines.WIDTH);
    }

    /** For a screen of so many columns; no cell is cut, so that two columns alone may be wider. */
    public static List<String> lines(Table table, int width) {
        TableText text = new TableText(table);
        List<String> lines = new ArrayList<>();
        if (!table.title().isEmpty()) {
            lines.addAll(Lines.wrapped("", table.title()));
        }
        int next = Math.min(1, text.widths.length);
        do {
            List<Integer> block = new ArrayList<>(List.of(0));
            int used = text.widths[0];
            while (next < text.widths.length
                    && (block.size() == 1 || used + GAP.length() + text.widths[next] <= width)) {
                used += GAP.length() + text.widths[next];
                block.add(next++);
            }
            text.block(block, lines);
            if (next < text.widths.length) {
                lines.add("");
            }
        } while (next < text.widths.length);
        return lines;
    }

    private void block(List<Integer> block, List<String> lines) {
        int height = block.stream().mapToInt(c -> heads.get(c).size()).max().orElse(0);
        for (int line = 0; line < height; line++) {
            int at = line;
            lines.add(line(block, c -> {
                int missing = height - heads.get(c).size(); // headings stand on the rows, not under the title
                return at < missing ? "" : heads.get(c).get(at - missing);
            }));
        }
        for (int row = 0; row < table.rows().size(); row++) {
            int at = row;
            lines.add(line(block, c -> table.shown(at, c)));
        }
    }

    private String line(List<Integer> block, IntFunction<String> cell) {
        return block.stream()
                .map(c -> padded(cell.apply(c), c))
                .collect(Collectors.joining(GAP))
                .stripTrailing();
    }

    private String padded(String text, int column) {
        String blank = " ".repeat(Math.max(0, widths[column] - text.length()));
        return table.columns().get(column).isText() ? text + blank : blank + text;
    }

    /** As Markdown, aligned so that it can be read as it is. */
    public static String markdown(Table table) {
        List<List<String>> rows = new ArrayList<>();
        rows.add(table.columns().stream().map(Heading::title).toList());
        rows.add(table.columns().stream()
                .map(heading -> heading.isText() ? "---" : "--:")
                .toList());
        for (int row = 0; row < table.rows().size(); row++) {
            int at = row;
            rows.add(IntStream.range(0, table.columns().size())
                    .mapToObj(c -> table.shown(at, c).replace("|", "\\|"))
                    .toList());
        }
        int[] widths = IntStream.range(0, table.columns().size())
                .map(c ->
                        rows.stream().mapToInt(row -> row.get(c).length()).max().orElse(0))
                .toArray();
        StringBuilder text = new StringBuilder(table.title().isEmpty() ? "" : table.title() + "\n\n");
        for (List<String> row : rows) {
            text.append('|');
            for (int c = 0; c < widths.length; c++) {
                String blank = (row == rows.get(1) ? "-" : " ")
                        .repeat(widths[c] - row.get(c).length());
                text.append(' ')
                        .append(table.columns().get(c).isText() ? row.get(c) + blank : blank + row.get(c))
                        .append(" |");
            }
            text.append('\n');
        }
        return text.toString();
    }
}
