package dev.millrace.report;

import dev.millrace.report.Format.Kind;
import java.util.Locale;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * A column of a table or CSV file.
 *
 * @param value of a row: string, number or boolean; null or non-finite for none
 */
public record Column<R>(Heading heading, Function<? super R, ? extends @Nullable Object> value) {

    /** Text as is. */
    public static <R> Column<R> text(String name, Function<? super R, ? extends @Nullable Object> value) {
        return of(name, Kind.TEXT, 0, value);
    }

    public static <R> Column<R> count(String name, ToLongFunction<? super R> value) {
        return of(name, Kind.COUNT, 0, value::applyAsLong);
    }

    public static <R> Column<R> countWhereKnown(String name, Function<? super R, @Nullable Long> value) {
        return of(name, Kind.COUNT, 0, value);
    }

    public static <R> Column<R> number(String name, int decimals, ToDoubleFunction<? super R> value) {
        return of(name, Kind.DECIMALS, decimals, value::applyAsDouble);
    }

    public static <R> Column<R> significant(String name, int digits, ToDoubleFunction<? super R> value) {
        return of(name, Kind.SIGNIFICANT, digits, value::applyAsDouble);
    }

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

    public Column<R> in(String unit) {
        return new Column<>(new Heading(heading.key(), heading.name(), unit, heading.format()), value);
    }

    @Nullable
    Object of(R row) {
        Object read = value.apply(row);
        return Format.isAbsent(read) ? null : read;
    }

    /**
     * @param key in CSV and for programs: lower case with underscores
     * @param unit empty if none
     */
    public record Heading(String key, String name, String unit, Format format) {
        String title() {
            return unit.isEmpty() ? name : name.isEmpty() ? unit : name + ", " + unit;
        }

        boolean isText() {
            return format.kind() == Format.Kind.TEXT;
        }
    }
}
