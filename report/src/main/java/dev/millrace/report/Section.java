package dev.millrace.report;

import java.util.ArrayList;
import java.util.List;

/**
 * @param title empty for none
 * @param closed shown by a page on request, and by text not at all
 * @param listing shown verbatim, such as a configuration; empty for none
 */
public record Section(
        String title, boolean closed, List<String> notes, List<Table> tables, List<Chart> charts, String listing) {
    public Section {
        notes = List.copyOf(notes);
        tables = List.copyOf(tables);
        charts = List.copyOf(charts);
    }

    public static Section of(String title) {
        return new Section(title, false, List.of(), List.of(), List.of(), "");
    }

    public Section forDetails() {
        return new Section(title, true, notes, tables, charts, listing);
    }

    public Section noting(List<String> more) {
        return new Section(title, closed, added(notes, more), tables, charts, listing);
    }

    public Section with(Table table) {
        return new Section(title, closed, notes, added(tables, List.of(table)), charts, listing);
    }

    public Section with(List<Chart> more) {
        return new Section(title, closed, notes, tables, added(charts, more), listing);
    }

    public Section listing(String text) {
        return new Section(title, closed, notes, tables, charts, text);
    }

    static <T> List<T> added(List<T> some, List<? extends T> more) {
        List<T> all = new ArrayList<>(some);
        all.addAll(more);
        return all;
    }
}
