package dev.millrace.report;

import dev.millrace.report.Column.Heading;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * A table as text, absent values as {@value Format#ABSENT}.
 *
 * <p>Headings wrap. A table wider than the screen wraps its longest text if {@value #TEXT} columns remain for it;
 * otherwise it continues below with its first column repeated, and a column too wide for that becomes a list. Nothing
 * is cut. Markdown rows are one line.
 */
public final class TableText {
    private static final String GAP = "  ";
    private static final int HEADING = 9;
    private static final int TEXT = 24;

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

    /** For the {@linkplain Lines#width() screen}. */
    public static List<String> lines(Table table) {
        return lines(table, Lines.width());
    }

    public static List<String> lines(Table table, int width) {
        TableText text = new TableText(table);
        List<String> lines = new ArrayList<>();
        if (!table.title().isEmpty()) {
            lines.addAll(Lines.wrapped("", table.title()));
        }
        text.breakLongest(width);
        text.blocks(lines, width);
        return lines;
    }

    private void breakLongest(int width) {
        int longest = IntStream.range(1, widths.length)
                .filter(c -> table.columns().get(c).isText())
                .boxed()
                .max(Comparator.comparingInt(c -> widths[c]))
                .orElse(0);
        int over = IntStream.of(widths).sum() + GAP.length() * (widths.length - 1) - width;
        if (longest > 0 && over > 0 && widths[longest] - over >= Math.max(TEXT, longestWord(longest))) {
            widths[longest] -= over;
        }
    }

    private int longestWord(int column) {
        return IntStream.range(0, table.rows().size())
                .mapToObj(row -> table.shown(row, column))
                .flatMap(text -> Stream.of(text.split(" ")))
                .mapToInt(String::length)
                .max()
                .orElse(0);
    }

    private List<String> cell(int row, int column) {
        String text = table.shown(row, column);
        return text.length() <= widths[column] ? List.of(text) : Lines.broken(text, widths[column]);
    }

    private void blocks(List<String> lines, int width) {
        int next = Math.min(1, widths.length);
        do {
            List<Integer> block = new ArrayList<>(List.of(0));
            int used = widths[0];
            while (next < widths.length && used + GAP.length() + widths[next] <= width) {
                used += GAP.length() + widths[next];
                block.add(next++);
            }
            if (block.size() > 1 || widths.length == 1) {
                block(block, lines);
            } else {
                list(next++, lines, width);
            }
            if (next < widths.length) {
                lines.add("");
            }
        } while (next < widths.length);
    }

    private void list(int column, List<String> lines, int width) {
        lines.addAll(Lines.wrapped("", GAP, table.columns().get(column).title(), width));
        for (int row = 0; row < table.rows().size(); row++) {
            lines.addAll(Lines.wrapped(GAP, GAP + GAP, table.shown(row, 0) + ": " + table.shown(row, column), width));
        }
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
            List<List<String>> cells =
                    IntStream.range(0, widths.length).mapToObj(c -> cell(at, c)).toList();
            int most = block.stream().mapToInt(c -> cells.get(c).size()).max().orElse(0);
            for (int line = 0; line < most; line++) {
                int part = line;
                lines.add(line(
                        block, c -> part < cells.get(c).size() ? cells.get(c).get(part) : ""));
            }
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
