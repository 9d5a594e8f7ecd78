package dev.millrace.corrections.diagnostics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.diagnostics.EvaluationFigures.DifficultyBin;
import dev.millrace.corrections.diagnostics.EvaluationFigures.PassAtKPoint;
import java.util.List;
import org.junit.jupiter.api.Test;

class EvaluationFiguresTest {
    /** Four prompts with four responses each: none, one, three and all of them correct. */
    private static final List<PromptCounts> FOUR = List.of(
            new PromptCounts(4, 0, 0.4, 40, 4),
            new PromptCounts(4, 1, 1.6, 24, 0),
            new PromptCounts(4, 3, 3.2, 16, 0),
            new PromptCounts(4, 4, 4.0, 8, 0));

    @Test
    void shouldTakeTheMeanOverPrompts() {
        EvaluationFigures figures = EvaluationFigures.of(FOUR);

        assertThat(figures.reward().mean()).isCloseTo((0.1 + 0.4 + 0.8 + 1.0) / 4, within(1e-12));
        // deviations from 0.575: 0.475, 0.175, 0.225, 0.425; squares 0.4875; s/sqrt(4) = sqrt(0.4875/3)/2 = 0.201556
        assertThat(figures.reward().low())
                .as("0.575 less 0.6414 is below any reward")
                .isZero();
        assertThat(figures.reward().high()).isEqualTo(1);
        assertThat(figures.truncatedShare()).isEqualTo(0.25);
    }

    @Test
    void shouldNotCutOffAnIntervalOfRewardsBeyondOne() {
        EvaluationFigures figures =
                EvaluationFigures.of(List.of(new PromptCounts(4, 0, -2, 40, 0), new PromptCounts(4, 4, 6, 8, 0)));

        assertThat(figures.reward().low()).isLessThan(-0.5);
        assertThat(figures.reward().high()).isGreaterThan(1.5);
    }

    @Test
    void shouldWeighAPromptWithFewerJudgedResponsesAsOneOfMany() {
        EvaluationFigures figures = EvaluationFigures.of(List.of(
                new PromptCounts(4, 4, 4, 4, 0), new PromptCounts(1, 0, 0, 4, 0), new PromptCounts(0, 0, 0, 0, 0)));

        assertThat(figures.reward().mean()).isEqualTo(0.5);
        assertThat(point(figures, 1).unbiased().mean()).isEqualTo(0.5);
        assertThat(point(figures, 2).unbiased().mean())
                .as("only the first has two")
                .isEqualTo(1.0);
    }

    @Test
    void shouldEstimatePassAtKWithoutBiasAsFarAsResponsesGo() {
        EvaluationFigures figures = EvaluationFigures.of(FOUR);

        assertThat(figures.passAtK()).extracting(PassAtKPoint::k).containsExactly(1, 2, 4, 8, 16, 32);
        assertThat(point(figures, 1).unbiased().mean()).isCloseTo((0 + 0.25 + 0.75 + 1) / 4, within(1e-12));
        // 1 - C(3,2)/C(4,2) = 1/2 of the second; 1 - C(1,2)/C(4,2) = 1 of the third
        assertThat(point(figures, 2).unbiased().mean()).isCloseTo((0 + 0.5 + 1 + 1) / 4, within(1e-12));
        assertThat(point(figures, 4).unbiased().mean()).isCloseTo(0.75, within(1e-12));
        assertThat(point(figures, 4).unbiased().high()).isEqualTo(1);
        assertThat(point(figures, 8).unbiased().mean()).isNaN();
        assertThat(point(figures, 8).unbiased().isKnown()).isFalse();
    }

    @Test
    void shouldExtrapolateInTwoWays() {
        EvaluationFigures figures = EvaluationFigures.of(FOUR);

        // 1 - (1 - c/4)^8
        double bernoulli = (0 + 1 - Math.pow(0.75, 8) + 1 - Math.pow(0.25, 8) + 1) / 4;
        assertThat(point(figures, 8).bernoulli()).isCloseTo(bernoulli, within(1e-12));
        assertThat(figures.fit()).hasValueSatisfying(fit -> {
            assertThat(point(figures, 8).betaBinomial()).isEqualTo(fit.passAtK(8));
            assertThat(point(figures, 1).betaBinomial()).isCloseTo(0.5, within(0.05));
        });
    }

    @Test
    void shouldSayNothingOfASpreadThatCannotBeSeen() {
        EvaluationFigures all =
                EvaluationFigures.of(List.of(new PromptCounts(2, 2, 2, 4, 0), new PromptCounts(2, 2, 2, 4, 0)));
        EvaluationFigures single =
                EvaluationFigures.of(List.of(new PromptCounts(1, 1, 1, 4, 0), new PromptCounts(1, 0, 0, 4, 0)));

        assertThat(all.fit()).isEmpty();
        assertThat(point(all, 2).betaBinomial()).isNaN();
        assertThat(point(all, 1).unbiased()).isEqualTo(new MeanInterval(1, Double.NaN, Double.NaN));
        assertThat(all.reward().isKnown()).isFalse();
        assertThat(single.fit()).isEmpty();
        assertThat(single.passAtK()).extracting(PassAtKPoint::k).containsExactly(1, 2, 4, 8);
    }

    @Test
    void shouldBinLengthsByHowOftenAPromptIsSolved() {
        EvaluationFigures figures = EvaluationFigures.of(FOUR);

        assertThat(figures.difficulties())
                .containsExactly(
                        new DifficultyBin(0, 0, 1, 4, 10, 1),
                        new DifficultyBin(0, 0.25, 1, 4, 6, 0),
                        new DifficultyBin(0.5, 0.75, 1, 4, 4, 0),
                        new DifficultyBin(1, 1, 1, 4, 2, 0));
    }

    @Test
    void shouldRefuseCountsThatCannotBe() {
        assertThatThrownBy(() -> new PromptCounts(2, 3, 1, 1, 0)).hasMessageContaining("correct=3");
        assertThatThrownBy(() -> new PromptCounts(2, 1, Double.NaN, 1, 0)).hasMessageContaining("reward_sum=NaN");
        assertThatThrownBy(() -> EvaluationFigures.of(List.of(new PromptCounts(0, 0, 0, 0, 0))))
                .hasMessageContaining("no response to any of 1 prompts was scored");
    }

    private static PassAtKPoint point(EvaluationFigures figures, int k) {
        return figures.passAtK().stream()
                .filter(point -> point.k() == k)
                .findFirst()
                .orElseThrow();
    }
}
