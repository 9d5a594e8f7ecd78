package dev.millrace.corrections.m2po;

import static dev.millrace.corrections.stage.StageExamples.decide;
import static dev.millrace.corrections.stage.StageExamples.facts;
import static dev.millrace.corrections.stage.StageExamples.last;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageExamples;
import java.util.List;
import org.junit.jupiter.api.Test;

class M2poTest {
    @Test
    void shouldMaskTheLargestSquaresUntilTheirMeanIsBelowTheThreshold() {
        // squares 1, 0.25, 0, ...: without the first the mean of seven is 0.0357
        Decision decision = decide(facts(1, 0.5, 0, 0, 0, 0, 0, 0), new SecondMomentFigure(), new M2po(0.04, false));

        assertThat(decision.left().mask()).containsExactly(0, 1, 1, 1, 1, 1, 1, 1);
        assertThat(decision.secondMoment()).hasValueCloseTo(1.25 / 8, within(1e-9));
        assertThat(decision.outcomes().get(0).values().get("mean")).isCloseTo(1.25 / 8, within(1e-9));
        assertThat(decision.outcomes().get(0).tokensActed()).isZero();
        assertThat(last(decision).stage()).isEqualTo("m2po");
        assertThat(last(decision).tokensActed()).isEqualTo(1);
        assertThat(last(decision).values())
                .containsEntry("threshold", 0.04)
                .containsEntry("harmful_only", 0.0)
                .containsEntry("candidates", 8.0)
                .containsEntry("within_threshold", 1.0);
        assertThat(last(decision).values().get("second_moment_before")).isCloseTo(1.25 / 8, within(1e-9));
        assertThat(last(decision).values().get("second_moment_after")).isCloseTo(0.25 / 7, within(1e-9));
    }

    @Test
    void shouldLeaveHarmlessTokensAlone() {
        // sequence 0 has a positive advantage: its ratio above 1 is harmful; sequence 1 a negative one: above 1 is not
        Decision decision = decide(facts(1, 0.1, 1, 0, 0, 0, 0, 0), Grpo.defaults(), M2po.defaults());

        assertThat(decision.left().mask()).containsExactly(0, 1, 1, 1, 1, 1, 1, 1);
    }

    @Test
    void shouldHaveNoSecondMomentOfNothing() {
        Decision decision =
                StageBatch.decide(StageExamples.starved(), List.of(new SecondMomentFigure(), M2po.defaults()));

        assertThat(decision.secondMoment()).isEmpty();
        assertThat(decision.outcomes().get(0).values()).isEmpty();
        assertThat(last(decision).values()).doesNotContainKeys("second_moment_before", "second_moment_after");
    }

    @Test
    void shouldRefuseAThresholdThatIsNone() {
        assertThatThrownBy(() -> new M2po(Double.NaN, true))
                .hasMessageContaining("threshold must be finite and at least 0: NaN");
        assertThatThrownBy(() -> new M2po(-0.1, true)).hasMessageContaining("-0.1");
    }
}
