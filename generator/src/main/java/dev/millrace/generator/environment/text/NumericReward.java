package dev.millrace.generator.environment.text;

import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.VerifiedReward;
import java.util.Map;
import java.util.Optional;

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
}
