package dev.millrace.corrections.weights;

import static dev.millrace.corrections.stage.StageExamples.last;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageExamples;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.WeightStage;
import java.util.List;
import org.junit.jupiter.api.Test;

class RatioWeightsTest {
    /** Log ratios of proximal to behavior 0.5, -2; old to behavior 0.1, 0; proximal to old 0.4, -2. */
    private static StageFacts facts() {
        return StageFacts.of(new TokenBatch(new int[] {0, 3}, new byte[] {1, 0, 1}), new double[1])
                .vector(StageInput.BEHAVIOR, new float[] {-1f, -1f, -1f})
                .vector(StageInput.OLD, new float[] {-0.9f, -1f, -1f})
                .vector(StageInput.PROXIMAL, new float[] {-0.5f, 0f, -3f})
                .build();
    }

    private static Decision weigh(WeightStage stage) {
        return StageBatch.decide(facts(), List.of(stage));
    }

    private static float[] weights(double first, double last) {
        return new float[] {(float) first, 0f, (float) last};
    }

    @Test
    void shouldTruncateEachTokensWeight() {
        Decision decision = weigh(new Token("1.5", false));

        assertThat(decision.weights()).containsExactly(weights(1.5, Math.exp(-2)), within(1e-6f));
        assertThat(last(decision).stage()).isEqualTo("token_tis");
        assertThat(last(decision).tokensSeen()).isEqualTo(2);
        assertThat(last(decision).tokensActed()).isEqualTo(1);
        assertThat(last(decision).sequencesActed()).isEqualTo(1);
        assertThat(last(decision).values()).containsEntry("upper", 1.5).containsEntry("max_weight", 1.5);
        assertThat(last(decision).values().get("mean_weight")).isCloseTo((1.5 + Math.exp(-2)) / 2, within(1e-6));
        assertThat(last(decision).values().get("rollout_corr/rollout_is_mean"))
                .isCloseTo((1.5 + Math.exp(-2)) / 2, within(1e-6));
    }

    @Test
    void shouldGiveTheTokensOfASequenceOneWeight() {
        Decision decision = weigh(Sequence.defaults());

        assertThat(decision.weights()).containsExactly(weights(Math.exp(-1.5), Math.exp(-1.5)), within(1e-6f));
        assertThat(last(decision).stage()).isEqualTo("sequence_tis");
    }

    @Test
    void shouldSetWeightsOutsideABandToZero() {
        Decision decision = weigh(new Token("0.5_5.0", false));

        assertThat(decision.weights()).containsExactly(weights(Math.exp(0.5), 0), within(1e-6f));
        assertThat(last(decision).stage()).isEqualTo("token_icepop");
        assertThat(last(decision).tokensActed()).isEqualTo(1);
        assertThat(last(decision).values()).containsEntry("lower", 0.5).containsEntry("upper", 5.0);
        assertThat(last(weigh(new Sequence("0.5_5.0", false))).stage()).isEqualTo("sequence_icepop");
    }

    @Test
    void shouldCompareThePoliciesItIsToldTo() {
        WeightStage token = Token.defaults();

        assertThat(weigh(token.comparing(RatioKind.ENGINE_MISMATCH)).weights())
                .containsExactly(weights(Math.exp(0.1), 1), within(1e-6f));
        assertThat(weigh(token.comparing(RatioKind.STALENESS)).weights())
                .containsExactly(weights(Math.exp(0.4), Math.exp(-2)), within(1e-6f));
        assertThat(token.comparing(RatioKind.STALENESS).comparing(RatioKind.ANCHOR))
                .isEqualTo(token);
        assertThat(token.comparing(RatioKind.STALENESS).inputs())
                .containsExactlyInAnyOrder(StageInput.PROXIMAL, StageInput.OLD);
        assertThat(token.comparing(RatioKind.STALENESS).name()).isEqualTo("token_tis");
    }

    @Test
    void shouldDivideWeightsByTheirMean() {
        Decision decision = weigh(new Token("1.5", true));
        double mean = (1.5 + Math.exp(-2)) / 2;

        assertThat(decision.weights()).containsExactly(weights(1.5 / mean, Math.exp(-2) / mean), within(1e-6f));
        assertThat(last(decision).values().get("batch_norm_factor")).isCloseTo(mean, within(1e-6));
        assertThat(last(decision).values().get("mean_weight")).isCloseTo(1, within(1e-9));
    }

    @Test
    void shouldWeighEveryTrainedTokenOneWithoutWeights() {
        Decision decision = weigh(new None());

        assertThat(decision.weights()).containsExactly(1f, 0f, 1f);
        assertThat(last(decision).stage()).isEqualTo("none");
        assertThat(new None().inputs()).isEmpty();
        assertThat(new None().comparing(RatioKind.STALENESS)).isEqualTo(new None());
    }

    @Test
    void shouldSayWhereWeightsAreTruncated() {
        assertThat(Token.defaults().cap()).hasValue(2.0);
        assertThat(Sequence.defaults().comparing(RatioKind.STALENESS).cap()).hasValue(2.0);
        assertThat(new Token("0.5_5.0", false).cap())
                .as("a band truncates nothing")
                .isEmpty();
        assertThat(new None().cap()).isEmpty();
    }

    @Test
    void shouldReportAlsoOfABatchWithoutTrainedTokens() {
        for (WeightStage stage : List.of(Token.defaults(), new Token("0.5_5.0", true), Sequence.defaults())) {
            Decision decision = StageBatch.decide(StageExamples.starved(), List.of(stage));
            assertThat(decision.weights()).containsOnly(0f);
            assertThat(last(decision).tokensSeen()).isZero();
            assertThat(last(decision).values()).containsOnlyKeys("batch_normalize");
        }
    }

    @Test
    void shouldRefuseThresholdsThatOnPolicyTokensDoNotSurvive() {
        assertThatThrownBy(() -> new Token("0.5", false))
                .hasMessageContaining("threshold=0.5 must be finite and leave an on-policy token its weight of 1");
        assertThatThrownBy(() -> new Sequence("1.5_2", false)).hasMessageContaining("threshold=1.5_2 must be finite");
        assertThatThrownBy(() -> new Token("two", false)).hasMessageContaining("threshold must be a number");
        assertThatThrownBy(() -> new Token("inf", false)).hasMessageContaining("must be finite");
    }
}
