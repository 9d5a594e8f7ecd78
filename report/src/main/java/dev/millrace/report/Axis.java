package dev.millrace.report;

import com.fasterxml.jackson.annotation.JsonInclude;
import org.jspecify.annotations.Nullable;

/**
 * An axis of a chart.
 *
 * @param name of what is on it; may be empty
 * @param unit of its values; empty if they have none
 * @param log whether it is logarithmic; what is not above 0 is left out then
 * @param from its least value; null for that of the data
 * @param to its largest value; null for that of the data
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record Axis(
        String name,
        String unit,
        boolean log,
        @Nullable Double from,
        @Nullable Double to) {
    /** An axis that fits its data. */
    public static Axis of(String name) {
        return new Axis(name, "", false, null, null);
    }

    /** An axis from 0 to 1, for shares, ratios below one and rewards. */
    public static Axis share(String name) {
        return new Axis(name, "", false, 0.0, 1.0);
    }

    /** The same with a unit. */
    public Axis in(String newUnit) {
        return new Axis(name, newUnit, log, from, to);
    }

    /** The same, logarithmic. */
    public Axis logarithmic() {
        return new Axis(name, unit, true, from, to);
    }

    /** The same, from a value on. */
    public Axis from(double least) {
        return new Axis(name, unit, log, least, to);
    }

    /** Whether a value has a place on it. */
    boolean holds(@Nullable Double value) {
        return value != null && (!log || value > 0);
    }

    String title() {
        return unit.isEmpty() ? name : name.isEmpty() ? unit : name + ", " + unit;
    }
}
