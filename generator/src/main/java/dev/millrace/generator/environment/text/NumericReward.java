package dev.millrace.generator.environment.text;

import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.VerifiedReward;
import java.util.Map;
import java.util.Optional;

/**
 * 1 where the last number of the response is that of the row's answer, 0 otherwise.
 * {@link WrittenNumber} says what is read as a number.
 *
 * @param tolerance largest accepted difference, at least 0
 */
public record NumericReward(double tolerance) implements RewardFunction {
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
        Optional<WrittenNumber> said = WrittenNumber.last(response.text());
        boolean right = said.isPresent() && said.get().isWithin(tolerance, answer);
        return new VerifiedReward(right ? 1 : 0, Map.of("numbers", said.isPresent() ? 1.0 : 0.0));
    }

    @Override
    public void requireJudgeable(String environmentState) {
        answer(environmentState);
    }

    /** The last number, which in an answer that shows its work is the result. */
    private static WrittenNumber answer(String state) {
        String answer = RowState.answer(state, "numeric");
        return WrittenNumber.last(answer)
                .orElseThrow(() -> new IllegalArgumentException(
                        "reward numeric compares with the last number in the row's \"answer\", which has none that it reads: '"
                                + answer
                                + "'"));
    }
}
