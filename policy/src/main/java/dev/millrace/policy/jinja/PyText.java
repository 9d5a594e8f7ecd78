package dev.millrace.policy.jinja;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.IntPredicate;
import org.jspecify.annotations.Nullable;

/**
 * Python's strings: white space, formatting, and methods without a Java equivalent. Lengths and indices are in code
 * points.
 */
final class PyText {
    private PyText() {}

    /** As {@code str.isspace} of one character. */
    static boolean isSpace(int c) {
        return Character.isSpaceChar(c) || c >= 9 && c <= 13 || c >= 0x1c && c <= 0x1f || c == 0x85;
    }

    /** @param characters to strip; null for blanks */
    static String stripped(String text, @Nullable String characters, boolean left, boolean right) {
        IntPredicate goes = characters == null ? PyText::isSpace : c -> characters.indexOf(c) >= 0;
        int from = 0;
        int to = text.length();
        while (left && from < to && goes.test(text.codePointAt(from))) {
            from += Character.charCount(text.codePointAt(from));
        }
        while (right && to > from && goes.test(text.codePointBefore(to))) {
            to -= Character.charCount(text.codePointBefore(to));
        }
        return text.substring(from, to);
    }

    static int length(String text) {
        return text.codePointCount(0, text.length());
    }

    static String at(String text, int place) {
        int from = text.offsetByCodePoints(0, place);
        return text.substring(from, text.offsetByCodePoints(from, 1));
    }

    static List<Object> characters(String text) {
        List<Object> all = new ArrayList<>();
        text.codePoints().forEach(c -> all.add(Character.toString(c)));
        return all;
    }

    /** @param most largest number of splits; unlimited below 0 */
    static List<Object> split(String text, String by, long most) {
        List<Object> parts = new ArrayList<>();
        int from = 0;
        for (int at = text.indexOf(by); at >= 0 && (most < 0 || parts.size() < most); at = text.indexOf(by, from)) {
            parts.add(text.substring(from, at));
            from = at + by.length();
        }
        parts.add(text.substring(from));
        return parts;
    }

    /** The same from the right. */
    static List<Object> splitRight(String text, String by, long most) {
        List<Object> parts = new ArrayList<>();
        int to = text.length();
        for (int at = text.lastIndexOf(by); at >= 0 && (most < 0 || parts.size() < most); ) {
            parts.add(0, text.substring(at + by.length(), to));
            to = at;
            at = at < by.length() ? -1 : text.lastIndexOf(by, at - by.length());
        }
        parts.add(0, text.substring(0, to));
        return parts;
    }

    /** Splits at blanks and drops them. */
    static List<Object> words(String text, long most) {
        List<Object> parts = new ArrayList<>();
        String rest = stripped(text, null, true, false);
        while (!rest.isEmpty()) {
            if (most >= 0 && parts.size() == most) {
                parts.add(stripped(rest, null, false, true));
                break;
            }
            int end = 0;
            while (end < rest.length() && !isSpace(rest.codePointAt(end))) {
                end += Character.charCount(rest.codePointAt(end));
            }
            parts.add(rest.substring(0, end));
            rest = stripped(rest.substring(end), null, true, false);
        }
        return parts;
    }

    static List<Object> lines(String text, boolean withEnds) {
        List<Object> lines = new ArrayList<>();
        int from = 0;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c >= 10 && c <= 13 || c >= 0x1c && c <= 0x1e || c == 0x85 || c == 0x2028 || c == 0x2029) {
                int end = c == '\r' && i + 1 < text.length() && text.charAt(i + 1) == '\n' ? i + 1 : i;
                lines.add(text.substring(from, withEnds ? end + 1 : i));
                from = end + 1;
                i = end;
            }
        }
        if (from < text.length()) {
            lines.add(text.substring(from));
        }
        return lines;
    }

    static String capitalized(String text) {
        if (text.isEmpty()) {
            return text;
        }
        int end = text.offsetByCodePoints(0, 1);
        return Character.toString(Character.toTitleCase(text.codePointAt(0)))
                + text.substring(end).toLowerCase(Locale.ROOT);
    }

    /** As {@code str.title}: a letter behind none is a capital. */
    static String titled(String text) {
        StringBuilder out = new StringBuilder();
        boolean isBehind = false;
        for (int c : text.codePoints().toArray()) {
            out.appendCodePoint(isBehind ? Character.toLowerCase(c) : Character.toTitleCase(c));
            isBehind = Character.isLetter(c);
        }
        return out.toString();
    }

    /** As {@code repr(float)}: the shortest digits that give the number. */
    static String number(double value) {
        if (Double.isNaN(value)) {
            return "nan";
        }
        if (Double.isInfinite(value)) {
            return value > 0 ? "inf" : "-inf";
        }
        if (value == 0) {
            return 1 / value < 0 ? "-0.0" : "0.0";
        }
        BigDecimal exact = new BigDecimal(Math.abs(value));
        BigDecimal shortest = exact;
        for (int digits = 1; digits <= 17; digits++) {
            shortest = exact.round(new MathContext(digits));
            if (shortest.doubleValue() == Math.abs(value)) {
                break;
            }
        }
        String digits = shortest.stripTrailingZeros().unscaledValue().toString();
        int exponent = shortest.precision() - shortest.scale() - 1;
        String sign = value < 0 ? "-" : "";
        if (exponent < -4 || exponent >= 16) {
            String power = (exponent < 0 ? "-" : "+") + (Math.abs(exponent) < 10 ? "0" : "") + Math.abs(exponent);
            return sign + digits.charAt(0) + (digits.length() > 1 ? "." + digits.substring(1) : "") + "e" + power;
        }
        if (exponent < 0) {
            return sign + "0." + "0".repeat(-exponent - 1) + digits;
        }
        String padded = digits + "0".repeat(Math.max(0, exponent + 1 - digits.length()));
        String fraction = padded.substring(exponent + 1);
        return sign + padded.substring(0, exponent + 1) + "." + (fraction.isEmpty() ? "0" : fraction);
    }

    /** As {@code repr(str)}. */
    static String quoted(String text) {
        char quote = text.indexOf('\'') >= 0 && text.indexOf('"') < 0 ? '"' : '\'';
        StringBuilder out = new StringBuilder().append(quote);
        text.codePoints().forEach(c -> {
            switch (c) {
                case '\\' -> out.append("\\\\");
                case '\n' -> out.append("\\n");
                case '\r' -> out.append("\\r");
                case '\t' -> out.append("\\t");
                default -> {
                    if (c == quote) {
                        out.append('\\').append(quote);
                    } else if (c == ' ' || isPrintable(c)) {
                        out.appendCodePoint(c);
                    } else {
                        out.append(
                                c < 0x100
                                        ? String.format("\\x%02x", c)
                                        : c < 0x10000 ? String.format("\\u%04x", c) : String.format("\\U%08x", c));
                    }
                }
            }
        });
        return out.append(quote).toString();
    }

    private static boolean isPrintable(int c) {
        return switch (Character.getType(c)) {
            case Character.CONTROL,
                    Character.FORMAT,
                    Character.SURROGATE,
                    Character.PRIVATE_USE,
                    Character.UNASSIGNED,
                    Character.LINE_SEPARATOR,
                    Character.PARAGRAPH_SEPARATOR,
                    Character.SPACE_SEPARATOR -> false;
            default -> true;
        };
    }

    /** As {@code json.dumps} writes a text. */
    static void json(String text, boolean asciiOnly, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            switch (c) {
                case '"' -> out.append("\\\"");
                case '\\' -> out.append("\\\\");
                case '\n' -> out.append("\\n");
                case '\r' -> out.append("\\r");
                case '\t' -> out.append("\\t");
                case '\b' -> out.append("\\b");
                case '\f' -> out.append("\\f");
                default -> {
                    if (c < 0x20 || asciiOnly && c > 0x7e) {
                        out.append(String.format("\\u%04x", (int) c));
                    } else {
                        out.append(c);
                    }
                }
            }
        }
        out.append('"');
    }
}
