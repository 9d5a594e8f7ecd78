package dev.millrace.generator.environment.text;

import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.VerifiedReward;
import java.math.BigDecimal;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * 1 where the number that the response gives is that of the row's answer, 0 otherwise. A text gives the last number in
 * its last {@code \boxed{...}}; without a box, its last number. {@link WrittenNumber} says what is read as a number.
 *
 * @param tolerance largest accepted difference, at least 0
 */
public record NumericReward(double tolerance) implements RewardFunction {
    private static final String BOX = "\\boxed{";

    public NumericReward {
        if (!(tolerance >= 0 && tolerance < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("tolerance must be at least 0 and finite: " + tolerance);
        }
    }

    /** The same number. */
    public static NumericReward defaults() {
        return new NumericReward(0);
    }

    @Override
    public VerifiedReward reward(FinishedResponse response) {
        WrittenNumber answer = answer(response.environmentState());
        Optional<WrittenNumber> said = given(response.text());
        boolean right = said.isPresent() && said.get().isWithin(tolerance, answer);
        return new VerifiedReward(right ? 1 : 0, Map.of("numbers", said.isPresent() ? 1.0 : 0.0));
    }

    @Override
    public void requireJudgeable(String environmentState) {
        answer(environmentState);
    }

    private static WrittenNumber answer(String state) {
        String answer = RowState.answer(state, "numeric");
        return given(answer)
                .orElseThrow(() -> new IllegalArgumentException(
                        "reward numeric compares with the last number in the row's \"answer\", which has none that it reads: '"
                                + answer
                                + "'"));
    }

    private static Optional<WrittenNumber> given(String text) {
        int box = text.lastIndexOf(BOX);
        return WrittenNumber.last(box < 0 ? text : text.substring(box, endOfBox(text, box + BOX.length())));
    }

    /** @param start behind the brace that opens the box */
    private static int endOfBox(String text, int start) {
        int depth = 1;
        int at = start;
        for (; at < text.length() && depth > 0; at++) {
            char mark = text.charAt(at);
            depth += mark == '{' ? 1 : mark == '}' ? -1 : 0;
        }
        return at;
    }

    /**
     * A number as texts write it, held exactly as {@code over / under}. Reads signs ({@code -}, U+2212, en dash) and thousands grouped by a comma, also
     * LaTeX's, or by a space that does not break. Reads {@code .5}, {@code 1e3}, {@code 10^6}, {@code 3 \times 10^6}, {@code 3/4}, {@code \frac{3}{4}} and
     * {@code 1 1/2}. Currency, percent signs and units with their exponents are passed over. A root, a multiple of pi, a time of day, a date and a number of
     * more than {@value #MOST_DIGITS} digits are found, and have no value.
     */
    record WrittenNumber(BigDecimal over, BigDecimal under) {
        private static final int MOST_DIGITS = 1000;

        private static final String GROUP = "(?:,\\\\!|\\{,\\}|\\\\,|[,\u00a0\u2009\u202f])";

        /** Before the exponent of a unit or a variable, which is no number of its own. */
        private static final String RAISED = "[\\p{L}}]\\^\\{?[-\u2212]?\\d{0,3}";

        /** Possessive, so that no text makes it slow. */
        private static final String PLAIN = "(?<!" + RAISED + ")(?:(?:\\d{1,3}+(?:" + GROUP
                + "\\d{3}(?!\\d))++|\\d++)(?:\\.\\d++)?+|(?<![.\\w])\\.\\d++)" + "(?:[eE][-+]?+\\d{1,3}+(?!\\d))?+";

        /** A sign with a space behind it is a dash or a bullet, unless a sign of comparison or a bracket is before it. */
        private static final String SIGN =
                "(?<sign>(?<![\\p{L}\\p{N})\\]}%])[-+\u2212\u2013]|(?<=[=(<>\u2264\u2265\u2248:]\\s{0,2})[-\u2212]\\s)?";

        private static final String CURRENCY = "(?:\\\\?+[$\u20ac\u00a3\u00a5]\\s?+)?+";

        private static final String BRACES = "\\{(%s(?:[^{}]|\\{[^{}]*+\\})*+)\\}";

        private static final String POWER =
                "\\^(?:\\{(?<%1$s>[-\u2212]?+\\d{1,3}+)\\}|(?<%1$sBare>[-\u2212]?+\\d{1,3}+)(?!\\d))";

        private static final String TIME_OR_DATE = "(?<![\\d:])\\d{1,2}+:\\d{2}(?!\\d)|\\d++/\\d++/\\d++";

        private static final String IRRATIONAL = "(?:" + PLAIN + "\\s?+)?+(?:\\\\sqrt(?:\\[[^\\]]*+\\])?+\\s*+(?:"
                + BRACES.formatted("?:") + "|\\d)|\u221a\\s?+\\d*+|\\\\pi(?!\\p{L})|\u03c0)";

        private static final Pattern NUMBER =
                Pattern.compile(SIGN + CURRENCY + "(?:(?<none>" + TIME_OR_DATE + "|" + IRRATIONAL + ")"
                        + "|(?:(?<whole>\\d++)\\s?+)?\\\\[dt]?+frac\\s*+(?:" + BRACES.formatted("?<over>")
                        + "|(?<overDigit>\\d))\\s*+(?:" + BRACES.formatted("?<under>") + "|(?<underDigit>\\d))"
                        + "|(?<units>\\d{1,3}+) (?<part>\\d++)/(?<parts>\\d++)(?![\\d/])"
                        + "|(?<plain>" + PLAIN + ")(?:" + POWER.formatted("power")
                        + "|\\s*+(?:\\\\times|\\\\cdot|[\u00d7\u00b7*])\\s*+10" + POWER.formatted("ten")
                        + "|\\s?+/\\s?+(?<divisor>" + PLAIN + ")(?!\\s?/))?)");

        private static final Pattern SIGNED = Pattern.compile("\\s*+([-+\u2212\u2013]?+)(" + PLAIN + ")\\s*+");

        /** The last number of the text; empty where there is none or where it has no value. */
        static Optional<WrittenNumber> last(String text) {
            Matcher found = NUMBER.matcher(text);
            Optional<WrittenNumber> last = Optional.empty();
            while (found.find()) {
                last = value(found);
            }
            return last;
        }

        private static Optional<WrittenNumber> value(Matcher found) {
            if (found.group("none") != null) {
                return Optional.empty();
            }
            Optional<WrittenNumber> size;
            if (found.group("plain") != null) {
                size = plain(found);
            } else if (found.group("units") != null) {
                size = mixed(found.group("units"), found.group("part"), found.group("parts"));
            } else {
                size = Optional.ofNullable(either(found, "over", "overDigit"))
                        .flatMap(over -> Optional.ofNullable(either(found, "under", "underDigit"))
                                .flatMap(under -> mixed(found.group("whole"), over, under)));
            }
            return isMinus(found.group("sign")) ? size.map(WrittenNumber::negated) : size;
        }

        private static Optional<WrittenNumber> plain(Matcher found) {
            Optional<WrittenNumber> size = signed(found.group("plain"));
            String power = either(found, "power", "powerBare");
            if (power != null) {
                return size.flatMap(base -> base.toThe(power));
            }
            String ten = either(found, "ten", "tenBare");
            if (ten != null) {
                return size.map(
                        factor -> new WrittenNumber(factor.over.scaleByPowerOfTen(exponent(ten)), factor.under));
            }
            String divisor = found.group("divisor");
            return divisor == null ? size : mixed(null, found.group("plain"), divisor);
        }

        private static Optional<WrittenNumber> mixed(@Nullable String units, String part, String parts) {
            return signed(part)
                    .flatMap(over -> signed(parts)
                            .filter(under -> under.over.signum() != 0)
                            .flatMap(under -> signed(units == null ? "0" : units)
                                    .map(whole -> new WrittenNumber(
                                            whole.over.multiply(under.over).add(over.over), under.over))));
        }

        private static Optional<WrittenNumber> signed(String text) {
            Matcher found = SIGNED.matcher(text);
            if (text.length() > MOST_DIGITS || !found.matches()) {
                return Optional.empty();
            }
            BigDecimal size = new BigDecimal(found.group(2).replaceAll(GROUP, ""));
            return Optional.of(new WrittenNumber(isMinus(found.group(1)) ? size.negate() : size, BigDecimal.ONE));
        }

        private Optional<WrittenNumber> toThe(String power) {
            int exponent = exponent(power);
            if ((long) over.precision() * Math.abs(exponent) > MOST_DIGITS || (exponent < 0 && over.signum() == 0)) {
                return Optional.empty();
            }
            BigDecimal raised = over.pow(Math.abs(exponent));
            return Optional.of(
                    exponent < 0
                            ? new WrittenNumber(BigDecimal.ONE, raised)
                            : new WrittenNumber(raised, BigDecimal.ONE));
        }

        private WrittenNumber negated() {
            return new WrittenNumber(over.negate(), under);
        }

        /** Whether {@code |this - other| <= tolerance}, without rounding. */
        boolean isWithin(double tolerance, WrittenNumber other) {
            BigDecimal apart = over.multiply(other.under).subtract(other.over.multiply(under));
            return apart.abs().compareTo(under.multiply(other.under).abs().multiply(BigDecimal.valueOf(tolerance)))
                    <= 0;
        }

        private static int exponent(String text) {
            return Integer.parseInt(text.replace('\u2212', '-'));
        }

        private static @Nullable String either(Matcher found, String one, String other) {
            return found.group(one) != null ? found.group(one) : found.group(other);
        }

        private static boolean isMinus(@Nullable String sign) {
            return sign != null && !sign.isEmpty() && sign.charAt(0) != '+';
        }
    }
}
