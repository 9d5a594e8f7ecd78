package dev.millrace.report;

import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** Wraps text to the {@linkplain #width() screen}. */
public final class Lines {
    /** Piped text is read on a terminal sooner or later. */
    static final int DEFAULT_WIDTH = 80;
    /** System property with the width of the terminal that the launcher found on standard output. */
    private static final String TERMINAL = "millrace.columns.out";

    private static final int NARROWEST = 20;
    /** For sentences; tables use the whole width. */
    private static final int LONGEST_LINE = 120;

    private static final int LABEL = 12;
    private static final DateTimeFormatter TIME =
            DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss.SSS").withZone(ZoneOffset.UTC);

    private Lines() {}

    /** Width of the terminal, else {@code COLUMNS}, else {@value #DEFAULT_WIDTH}. */
    public static int width() {
        return width(Integer.getInteger(TERMINAL, 0), System.getenv("COLUMNS"));
    }

    static int width(int terminal, @Nullable String columns) {
        int asked = terminal > 0 || columns == null || !columns.matches("[1-9][0-9]{0,4}")
                ? terminal
                : Integer.parseInt(columns);
        return asked > 0 ? Math.max(NARROWEST, asked) : DEFAULT_WIDTH;
    }

    /** Wraps with {@code indent}, continuation lines two columns deeper. */
    public static List<String> wrapped(String indent, String text) {
        return wrapped(indent, indent + "  ", text);
    }

    public static List<String> labelled(String label, String text) {
        String first = "  " + label + " ".repeat(Math.max(1, LABEL - label.length()));
        return wrapped(first, " ".repeat(2 + LABEL), text);
    }

    /** Longer words stay whole. */
    public static List<String> broken(String text, int width) {
        return wrapped("", "", text, width);
    }

    private static List<String> wrapped(String first, String others, String text) {
        return wrapped(first, others, text, Math.min(LONGEST_LINE, width()));
    }

    /** Longer words stay whole, so that names can be copied. */
    static List<String> wrapped(String first, String others, String text, int width) {
        List<String> lines = new ArrayList<>();
        StringBuilder line = new StringBuilder(first);
        boolean empty = true;
        for (String word : text.strip().split("\\s+")) {
            if (!empty && line.length() + 1 + word.length() > width) {
                lines.add(line.toString());
                line = new StringBuilder(others);
                empty = true;
            }
            line.append(empty ? "" : " ").append(word);
            empty = false;
        }
        lines.add(line.toString());
        return lines;
    }

    /** UTC, to the millisecond. */
    public static String time(long ms) {
        return TIME.format(Instant.ofEpochMilli(ms));
    }

    /** Such as 340 ms, 12.3 s, 4 min 10 s, 3 h 20 min, 2 d 3 h. */
    public static String duration(long ms) {
        if (ms < 0) {
            return "-" + duration(-ms);
        }
        if (ms < 1000) {
            return ms + " ms";
        }
        if (ms < 60_000) {
            return String.format(Locale.ROOT, "%.1f s", ms / 1e3);
        }
        long seconds = ms / 1000;
        if (seconds < 3600) {
            return seconds / 60 + " min " + seconds % 60 + " s";
        }
        long minutes = seconds / 60;
        return minutes < 24 * 60
                ? minutes / 60 + " h " + minutes % 60 + " min"
                : minutes / (24 * 60) + " d " + minutes / 60 % 24 + " h";
    }
}
