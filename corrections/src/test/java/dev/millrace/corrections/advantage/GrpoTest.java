package dev.millrace.corrections.advantage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageExamples;
import dev.millrace.corrections.stage.StageOutcome;
import org.junit.jupiter.api.Test;

class GrpoTest {
    /** Groups 0: sequences 0, 2, 3; group 1: sequence 1 alone. */
    private final TokenBatch batch =
            new TokenBatch(new int[] {0, 2, 3, 4, 5}, new byte[] {1, 0, 1, 1, 0}, new int[] {0, 1, 0, 0});

    @Test
    void shouldCentreEachGroupAndDivideByItsSampleDeviation() {
        double[] rewards = {1, 5, 2, 3}; // group 0: mean 2, sample deviation 1

        assertThat(new Grpo(false).perSequence(batch, rewards)).containsExactly(-1, 5, 0, 1);
        assertThat(new Grpo(true).perSequence(batch, rewards))
                .containsExactly(new double[] {-1 / 1.000001, 5 / 1.000001, 0, 1 / 1.000001}, within(1e-15));
    }

    @Test
    void shouldGiveNoAdvantageWhereAllRewardsAgree() {
        assertThat(new Grpo(true).perSequence(batch, new double[] {0.1, 0, 0.1, 0.1}))
                .containsExactly(new double[] {0, 0, 0, 0}, within(1e-9));
    }

    @Test
    void shouldNameTheSequenceOfANonFiniteReward() {
        assertThatThrownBy(() -> new Grpo(true).perSequence(batch, new double[] {1, 2, Double.NaN, 4}))
                .hasMessageContaining("rewards must be finite: sequence=2, value=NaN");
        assertThatThrownBy(() -> new Grpo(true).perSequence(batch, new double[3]))
                .hasMessageContaining("length=3, sequences=4");
    }

    @Test
    void shouldReportAsAStageOverWholeGroups() {
        Decision decision = StageExamples.decide(StageExamples.facts(), new Grpo(true));
        StageOutcome outcome = StageExamples.last(decision);

        double advantage = 0.5 / (Math.sqrt(0.5) + 1e-6);
        assertThat(decision.advantages())
                .containsExactly(new double[] {advantage, -advantage, advantage, -advantage}, within(1e-12));
        assertThat(outcome.stage()).isEqualTo("grpo");
        assertThat(outcome.tokensActed()).isEqualTo(8);
        assertThat(outcome.values())
                .containsOnlyKeys("groups", "mean_absolute", "zero_sequences", "divide_by_std")
                .containsEntry("groups", 2.0)
                .containsEntry("zero_sequences", 0.0)
                .containsEntry("divide_by_std", 1.0);
    }
}
