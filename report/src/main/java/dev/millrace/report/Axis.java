package dev.millrace.report;

import com.fasterxml.jackson.annotation.JsonInclude;
import org.jspecify.annotations.Nullable;

/**
 * An axis of a chart.
 *
 * @param name may be empty
 * @param unit empty if none
 * @param log logarithmic; drops values not above 0
 * @param from least value; null for the data's
 * @param to largest value; null for the data's
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record Axis(
        String name,
        String unit,
        boolean log,
        @Nullable Double from,
        @Nullable Double to) {
    public static Axis of(String name) {
        return new Axis(name, "", false, null, null);
    }

    /** From 0 to 1. */
    public static Axis share(String name) {
        return new Axis(name, "", false, 0.0, 1.0);
    }

    public Axis in(String newUnit) {
        return new Axis(name, newUnit, log, from, to);
    }

    public Axis logarithmic() {
        return new Axis(name, unit, true, from, to);
    }

    boolean holds(@Nullable Double value) {
        return value != null && (!log || value > 0);
    }

    String title() {
        return unit.isEmpty() ? name : name.isEmpty() ? unit : name + ", " + unit;
    }
}
