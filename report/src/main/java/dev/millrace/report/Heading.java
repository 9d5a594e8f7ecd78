package dev.millrace.report;

/**
 * The head of a column.
 *
 * @param key its name in CSV and for programs: lower case, words joined by underscores
 * @param name for people
 * @param unit of its values; empty if they have none
 * @param format of its values
 */
public record Heading(String key, String name, String unit, Format format) {
    /** Name and unit on one line. */
    String title() {
        return unit.isEmpty() ? name : name.isEmpty() ? unit : name + ", " + unit;
    }

    boolean isText() {
        return format.kind() == Format.Kind.TEXT;
    }
}
