package dev.millrace.report;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * How a person sees a value.
 *
 * @param kind of value
 * @param digits after the point, or significant ones
 */
public record Format(Kind kind, int digits) {
    /** What stands where there is no value. */
    public static final String ABSENT = "-";

    /** Kinds of values. */
    public enum Kind {
        /** As it is, from the left. */
        TEXT,
        /** A whole number. */
        COUNT,
        /** A number with so many digits after the point. */
        DECIMALS,
        /** A number with so many significant digits. */
        SIGNIFICANT,
        /** A share of one, shown in percent. */
        PERCENT
    }

    /** The value in words; {@value #ABSENT} for null and for a number that is not finite. */
    public String shown(@Nullable Object value) {
        if (value == null || isAbsent(value)) {
            return ABSENT;
        }
        if (!(value instanceof Number number)) {
            return value.toString();
        }
        return switch (kind) {
            case TEXT -> value.toString();
            case COUNT -> String.format(Locale.ROOT, "%,d", number.longValue());
            case DECIMALS -> rounded(number.doubleValue(), "");
            case SIGNIFICANT -> String.format(Locale.ROOT, "%." + digits + "g", number.doubleValue());
            case PERCENT -> rounded(100 * number.doubleValue(), " %");
        };
    }

    /** A number that rounds to zero has no sign. */
    private String rounded(double value, String unit) {
        return String.format(Locale.ROOT, "%." + digits + "f", value).replaceFirst("^-(?=[0.]+$)", "") + unit;
    }

    /** Whether there is no value to show: null, or a number that is not finite. */
    static boolean isAbsent(@Nullable Object value) {
        return value == null || value instanceof Double number && !Double.isFinite(number);
    }
}
