package dev.millrace.corrections.rollout;

import java.util.Locale;
import java.util.regex.Pattern;

/**
 * Numbers in threshold texts, read as Python's {@code float()} reads them: surrounding blanks, a sign, digits with
 * single underscores between them, an exponent, {@code inf} and {@code nan}; neither hexadecimal nor a type suffix.
 */
public final class ThresholdText {
    private static final String DIGITS = "[0-9](?:_?[0-9])*";
    private static final String UNSIGNED = "(?:" + DIGITS + "\\.?(?:" + DIGITS + ")?|\\." + DIGITS + ")";
    private static final Pattern NUMBER = Pattern.compile("[+-]?" + UNSIGNED + "(?:[eE][+-]?" + DIGITS + ")?");

    private ThresholdText() {}

    /**
     * The number.
     *
     * @throws IllegalArgumentException quoting the text
     */
    public static double number(String key, String text) {
        String trimmed = text.strip();
        if (NUMBER.matcher(trimmed).matches()) {
            return Double.parseDouble(trimmed.replace("_", ""));
        }
        String unsigned = trimmed.toLowerCase(Locale.ROOT).replaceFirst("^[+-]", "");
        if (unsigned.equals("inf") || unsigned.equals("infinity")) {
            return trimmed.startsWith("-") ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY;
        }
        throw new IllegalArgumentException(key + " must be a number or lower_upper: '" + text + "'");
    }
}
