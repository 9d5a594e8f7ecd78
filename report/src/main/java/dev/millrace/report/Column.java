package dev.millrace.report;

import dev.millrace.report.Format.Kind;
import java.util.Locale;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * A column of a table or of a CSV file: what it is called, and how its value is read from a row.
 *
 * @param heading its name, unit and format
 * @param value of a row: a string, a number, a boolean; null or a number that is not finite where there is none
 * @param <R> row
 */
public record Column<R>(Heading heading, Function<? super R, ? extends @Nullable Object> value) {

    /** Text, and whatever is shown as it is. */
    public static <R> Column<R> text(String name, Function<? super R, ? extends @Nullable Object> value) {
        return of(name, Kind.TEXT, 0, value);
    }

    /** Whole numbers. */
    public static <R> Column<R> count(String name, ToLongFunction<? super R> value) {
        return of(name, Kind.COUNT, 0, value::applyAsLong);
    }

    /** Whole numbers, null where there is none. */
    public static <R> Column<R> countWhereKnown(String name, Function<? super R, @Nullable Long> value) {
        return of(name, Kind.COUNT, 0, value);
    }

    /** Numbers with so many digits after the point. */
    public static <R> Column<R> number(String name, int decimals, ToDoubleFunction<? super R> value) {
        return of(name, Kind.DECIMALS, decimals, value::applyAsDouble);
    }

    /** Numbers with so many significant digits. */
    public static <R> Column<R> significant(String name, int digits, ToDoubleFunction<? super R> value) {
        return of(name, Kind.SIGNIFICANT, digits, value::applyAsDouble);
    }

    /** Shares of one, shown in percent. */
    public static <R> Column<R> percent(String name, int decimals, ToDoubleFunction<? super R> value) {
        return of(name, Kind.PERCENT, decimals, value::applyAsDouble);
    }

    private static <R> Column<R> of(
            String name, Kind kind, int digits, Function<? super R, ? extends @Nullable Object> value) {
        return new Column<>(new Heading(key(name), name, "", new Format(kind, digits)), value);
    }

    private static String key(String name) {
        return name.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]+", "_").replaceAll("^_|_$", "");
    }

    /** The same column with a unit. */
    public Column<R> in(String unit) {
        return new Column<>(new Heading(heading.key(), heading.name(), unit, heading.format()), value);
    }

    /** The value of a row; null where there is none. */
    @Nullable
    Object of(R row) {
        Object read = value.apply(row);
        return Format.isAbsent(read) ? null : read;
    }

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
}
