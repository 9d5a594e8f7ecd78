package dev.millrace.report;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Format of a value for people.
 *
 * @param digits after the point, or significant ones
 */
public record Format(Kind kind, int digits) {
    /** Stands for an absent value. */
    public static final String ABSENT = "-";

    public enum Kind {
        TEXT,
        COUNT,
        DECIMALS,
        SIGNIFICANT,
        PERCENT
    }

    /** {@value #ABSENT} for null and non-finite numbers. */
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

    private String rounded(double value, String unit) {
        return String.format(Locale.ROOT, "%." + digits + "f", value).replaceFirst("^-(?=[0.]+$)", "") + unit;
    }

    static boolean isAbsent(@Nullable Object value) {
        return value == null || value instanceof Double number && !Double.isFinite(number);
    }
}
