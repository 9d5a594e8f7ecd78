package dev.millrace.runtime.evaluation;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class EvaluationTextTest {
    @Test
    void shouldShowNoIntervalOverAFewPrompts() {
        assertThat(EvaluationText.reward(MadeEvaluation.of(1, "two", 2, 1))).isEqualTo("0.750");
        assertThat(EvaluationText.prompts(MadeEvaluation.of(1, "two", 2, 1)))
                .isEqualTo("2 prompts: too few for an interval");
    }

    @Test
    void shouldShowAnIntervalWithinTheRewards() {
        assertThat(EvaluationText.reward(MadeEvaluation.of(1, "ten", 2, 2, 2, 2, 2, 2, 2, 2, 2, 1)))
                .isEqualTo("0.950 [0.837, 1.000]");
        assertThat(EvaluationText.prompts(MadeEvaluation.of(1, "ten", 2, 2, 2, 2, 2, 2, 2, 2, 2, 1)))
                .isEqualTo("10 prompts, with the interval of 95 % by Student");
    }
}
