package dev.millrace.report;

import java.util.ArrayList;
import java.util.List;

/**
 * A part of a report.
 *
 * @param title above it; empty for none
 * @param closed whether a page shows it only when asked to, and a text not at all
 * @param notes sentences under the title
 * @param listing text that is shown as it is, such as a configuration; empty for none
 */
public record Section(
        String title, boolean closed, List<String> notes, List<Table> tables, List<Chart> charts, String listing) {
    public Section {
        notes = List.copyOf(notes);
        tables = List.copyOf(tables);
        charts = List.copyOf(charts);
    }

    /** An open section with nothing in it. */
    public static Section of(String title) {
        return new Section(title, false, List.of(), List.of(), List.of(), "");
    }

    /** The same, for those who ask for details. */
    public Section forDetails() {
        return new Section(title, true, notes, tables, charts, listing);
    }

    /** The same with more notes. */
    public Section noting(List<String> more) {
        return new Section(title, closed, added(notes, more), tables, charts, listing);
    }

    /** The same with another table. */
    public Section with(Table table) {
        return new Section(title, closed, notes, added(tables, List.of(table)), charts, listing);
    }

    /** The same with more charts. */
    public Section with(List<Chart> more) {
        return new Section(title, closed, notes, tables, added(charts, more), listing);
    }

    /** The same with a listing. */
    public Section listing(String text) {
        return new Section(title, closed, notes, tables, charts, text);
    }

    static <T> List<T> added(List<T> some, List<? extends T> more) {
        List<T> all = new ArrayList<>(some);
        all.addAll(more);
        return all;
    }
}
