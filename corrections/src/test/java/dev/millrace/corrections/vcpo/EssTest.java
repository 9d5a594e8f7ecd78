package dev.millrace.corrections.vcpo;

import static dev.millrace.corrections.stage.StageExamples.decide;
import static dev.millrace.corrections.stage.StageExamples.facts;
import static dev.millrace.corrections.stage.StageExamples.last;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageExamples;
import dev.millrace.corrections.vcpo.Ess.Rule;
import dev.millrace.corrections.vcpo.Ess.Weights;
import java.util.List;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

class EssTest {
    /** Sequence weights 4, 1, 1, 1: raw ESS 49/19, of 4; truncated at 2 it is 25/7. */
    private static final double[] ONE_OF_FOUR = {Math.log(2), Math.log(2), 0, 0, 0, 0, 0, 0};

    private static final double RAW = 49.0 / 19 / 4;
    private static final double TRUNCATED = 25.0 / 7 / 4;

    @Test
    void shouldScaleTheStepByTheSquareRootOfTheRawRatio() {
        Decision decision = decide(facts(ONE_OF_FOUR), Ess.defaults().truncatedAt(OptionalDouble.of(2)));

        assertThat(decision.essRatio()).hasValueCloseTo(RAW, within(1e-6));
        assertThat(decision.essRatioTruncated()).hasValueCloseTo(TRUNCATED, within(1e-6));
        assertThat(decision.stepScale()).isCloseTo(Math.sqrt(RAW), within(1e-6));
        assertThat(last(decision).stage()).isEqualTo("ess");
        assertThat(last(decision).tokensActed()).isEqualTo(8);
        assertThat(last(decision).values())
                .containsOnlyKeys("base_ratio", "ess_ratio", "ess_ratio_truncated", "step_scale");
    }

    @Test
    void shouldScaleByTheRatioOfTruncatedWeights() {
        Decision decision = decide(
                facts(ONE_OF_FOUR), new Ess(Rule.LINEAR, Weights.TRUNCATED, 1.0).truncatedAt(OptionalDouble.of(2)));

        assertThat(decision.stepScale()).isCloseTo(TRUNCATED, within(1e-6));
    }

    @Test
    void shouldReportWithoutScaling() {
        Decision decision = decide(facts(ONE_OF_FOUR), new Ess(Rule.NONE, Weights.TRUNCATED, 1.0));

        assertThat(decision.stepScale()).isEqualTo(1);
        assertThat(decision.essRatio()).hasValueCloseTo(RAW, within(1e-6));
        assertThat(decision.essRatioTruncated()).as("nothing truncates").isEmpty();
        assertThat(last(decision).tokensActed()).isZero();
    }

    @Test
    void shouldHaveNoSampleSizeWhereNothingIsLeft() {
        Decision decision = StageBatch.decide(StageExamples.starved(), List.of(Ess.defaults()));

        assertThat(decision.essRatio()).isEmpty();
        assertThat(decision.essRatioTruncated()).isEmpty();
        assertThat(decision.stepScale()).isEqualTo(1);
        assertThat(last(decision).values()).doesNotContainKeys("ess_ratio", "ess_ratio_truncated");
    }

    @Test
    void shouldRefuseTruncatedWeightsWhereNothingTruncates() {
        Ess truncated = new Ess(Rule.SQRT, Weights.TRUNCATED, 1.0);

        assertThatThrownBy(() -> truncated.truncatedAt(OptionalDouble.empty()))
                .hasMessageContaining("no stage truncates them; choose weights=raw");
        assertThatThrownBy(() -> new Ess(Rule.SQRT, Weights.RAW, 0))
                .hasMessageContaining("base_ratio must be in (0, 1]: 0.0");
    }
}
