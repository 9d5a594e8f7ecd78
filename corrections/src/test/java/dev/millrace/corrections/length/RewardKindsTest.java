package dev.millrace.corrections.length;

import static dev.millrace.corrections.stage.StageExamples.last;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.RewardStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageExamples;
import dev.millrace.corrections.stage.StageFacts;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Kinds of reward stages: one group, answers of 2, 4, 4 and 6 tokens, the first three correct. */
class RewardKindsTest {
    private static StageFacts facts() {
        byte[] mask = new byte[16];
        Arrays.fill(mask, (byte) 1);
        return StageFacts.of(new TokenBatch(new int[] {0, 2, 6, 10, 16}, mask, new int[4]), new double[] {1, 1, 1, 0})
                .build();
    }

    private static Decision decide(RewardStage stage) {
        return StageBatch.decide(facts(), List.of(stage, Grpo.defaults()));
    }

    private static Stream<LengthPenalty> penalties() {
        return Stream.of(
                UniformLengthPenalty.defaults(),
                GroupAdaptiveLengthPenalty.defaults(),
                AnchorLengthPenalty.defaults(),
                KimiLengthPenalty.defaults(),
                new LaserLengthReward(3, 0.5, 0.5));
    }

    @ParameterizedTest
    @MethodSource("penalties")
    void shouldTakeTheirPriceBeforeAdvantagesAreTaken(LengthPenalty penalty) {
        Decision decision = decide(penalty);

        assertThat(decision.outcomes().get(0).tokensActed()).isPositive();
        assertThat(decision.outcomes().get(0).stage()).isEqualTo(penalty.name());
        assertThat(decision.outcomes().get(0).values())
                .containsEntry("correct_sequences", 3.0)
                .containsEntry("correct_above", 0.5)
                .containsKey("mean_penalty");
        assertThat(decision.advantages()[0]).isGreaterThan(decision.advantages()[1]);
        assertThat(last(StageBatch.decide(StageExamples.starved(), List.of(penalty)))
                        .tokensActed())
                .isZero();
    }

    @Test
    void shouldPriceEveryTokenAlike() {
        assertThat(decide(new UniformLengthPenalty(0.01)).rewards())
                .containsExactly(new double[] {0.98, 0.96, 0.96, -0.06}, within(1e-12));
    }

    @Test
    void shouldPriceByTheSolveRateOfTheGroup() {
        assertThat(decide(new GroupAdaptiveLengthPenalty(0.01)).rewards())
                .containsExactly(new double[] {0.985, 0.97, 0.97, -0.045}, within(1e-12));
    }

    @Test
    void shouldPriceWhatExceedsTheShortestCorrectAnswer() {
        // anchor 2, tolerance 0.2: twice the length is 0.8 too long
        assertThat(decide(new AnchorLengthPenalty(0.1, 0.2, 0.5)).rewards())
                .containsExactly(new double[] {1, 0.92, 0.92, 0}, within(1e-12));
        assertThat(decide(new AnchorLengthPenalty(0.1, 0.2, 0.5, 1)).rewards())
                .as("nothing is rewarded with more than 1")
                .containsExactly(1, 1, 1, 0);
    }

    @Test
    void shouldRewardBeingShortAmongTheAnswersOfTheGroup() {
        // λ of 2, 4, 4 and 6 tokens: 1/2, 0, 0 and -1/2
        assertThat(decide(new KimiLengthPenalty(0.1, 0.5)).rewards())
                .containsExactly(new double[] {1.05, 1, 1, -0.05}, within(1e-12));
        assertThat(decide(new KimiLengthPenalty(0.1, 1)).rewards())
                .as("a wrong answer gains nothing by being short")
                .containsExactly(new double[] {1, 1, 1, -0.05}, within(1e-12));
    }

    @Test
    void shouldRewardCorrectAnswersWithinTheTarget() {
        assertThat(decide(new LaserLengthReward(4, 0.5, 0.5)).rewards()).containsExactly(1.5, 1.5, 1.5, 0);
        assertThat(decide(new LaserLengthReward(3, 0.25, 0.5)).rewards()).containsExactly(1.25, 1, 1, 0);
        assertThat(decide(new LaserLengthReward(6, 0.5, 1)).rewards())
                .as("nothing is rewarded with more than 1")
                .containsExactly(1, 1, 1, 0);
    }

    @Test
    void shouldReportPassAtKWithinAndBeyondTheSamples() {
        Decision two = decide(new PassAtKFigure(2, 0.5));
        // one of four is wrong: two draws cannot both be
        assertThat(two.outcomes().get(0).values()).containsEntry("pass_at_k", 1.0);
        assertThat(two.rewards()).containsExactly(1, 1, 1, 0);
        assertThat(two.outcomes().get(0).tokensActed()).isZero();

        Decision eight = decide(new PassAtKFigure(8, 0.5));
        assertThat(eight.outcomes().get(0).values())
                .doesNotContainKey("pass_at_k")
                .containsKey("pass_at_k_beta_binomial");
        assertThat(eight.outcomes().get(0).values().get("pass_at_k_bernoulli"))
                .isCloseTo(1 - Math.pow(0.25, 8), within(1e-12));
        assertThat(decide(new PassAtKFigure(2, 2)).outcomes().get(0).values())
                .as("nothing solved, so nothing to fit")
                .doesNotContainKey("pass_at_k_beta_binomial")
                .containsEntry("pass_at_k", 0.0);
    }

    @Test
    void shouldRefusePricesThatAreNone() {
        assertThatThrownBy(() -> new AnchorLengthPenalty(0.1, -1, 0.5)).hasMessageContaining("tolerance must be");
        assertThatThrownBy(() -> new UniformLengthPenalty(1e-4, Double.NaN))
                .hasMessageContaining("correct_above must be finite: NaN");
        assertThatThrownBy(() -> new LaserLengthReward(0, 0.5, 0.5))
                .hasMessageContaining("target must be at least 1: 0");
        assertThatThrownBy(() -> new KimiLengthPenalty(-1, 0.5)).hasMessageContaining("weight must be");
        assertThatThrownBy(() -> new PassAtKFigure(0, 0.5)).hasMessageContaining("k must be at least 1: 0");
    }
}
