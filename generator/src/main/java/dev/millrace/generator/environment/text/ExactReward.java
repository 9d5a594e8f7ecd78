package dev.millrace.generator.environment.text;

import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.VerifiedReward;
import java.util.Map;

/**
 * 1 where the response is the row's answer, apart from white space around it, 0 otherwise.
 *
 * @param caseSensitive compare case-sensitively
 */
public record ExactReward(boolean caseSensitive) implements RewardFunction {

    /** Letter by letter. */
    public static ExactReward defaults() {
        return new ExactReward(true);
    }

    @Override
    public VerifiedReward reward(FinishedResponse response) {
        String answer = RowState.answer(response.environmentState(), "exact");
        String text = response.text().strip();
        boolean right = caseSensitive ? text.equals(answer) : text.equalsIgnoreCase(answer);
        return new VerifiedReward(right ? 1 : 0, Map.of());
    }

    @Override
    public void requireJudgeable(String environmentState) {
        RowState.answer(environmentState, "exact");
    }
}
