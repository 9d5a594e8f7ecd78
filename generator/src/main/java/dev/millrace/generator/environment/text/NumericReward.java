package dev.millrace.generator.environment.text;

import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.VerifiedReward;
import java.math.BigDecimal;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * 1 where the last number of the response is that of the row's answer, 0 otherwise. A comma between digits groups thousands.
 *
 * @param tolerance how far the number may be from the answer and still be right, at least 0; 0 for the same number
 */
public record NumericReward(double tolerance) implements RewardFunction {
    /** Possessive, so that no text makes it slow; the exponent is bounded, since a number is held exactly. */
    private static final Pattern NUMBER =
            Pattern.compile("[-+]?+(?:\\d{1,3}+(?:,\\d{3})++|\\d++)(?:\\.\\d++)?+(?:[eE][-+]?+\\d{1,3}+(?!\\d))?+");

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
        BigDecimal answer = answer(response.environmentState());
        Optional<BigDecimal> said = last(response.text());
        boolean right =
                said.isPresent() && said.get().subtract(answer).abs().compareTo(BigDecimal.valueOf(tolerance)) <= 0;
        return new VerifiedReward(right ? 1 : 0, Map.of("numbers", said.isPresent() ? 1.0 : 0.0));
    }

    @Override
    public void requireJudgeable(String environmentState) {
        answer(environmentState);
    }

    /** The last number, which in an answer that shows its work is the result. */
    private static BigDecimal answer(String state) {
        String answer = RowState.answer(state, "numeric");
        return last(answer)
                .orElseThrow(() -> new IllegalArgumentException(
                        "reward numeric compares with the number in the row's \"answer\", which has none: '" + answer
                                + "'"));
    }

    private static Optional<BigDecimal> last(String text) {
        Matcher numbers = NUMBER.matcher(text);
        String found = "";
        while (numbers.find()) {
            found = numbers.group();
        }
        return found.isEmpty() ? Optional.empty() : Optional.of(new BigDecimal(found.replace(",", "")));
    }
}
