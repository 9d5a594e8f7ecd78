package dev.millrace.corrections.weights;

import static dev.millrace.corrections.stage.StageExamples.decide;
import static dev.millrace.corrections.stage.StageExamples.facts;
import static dev.millrace.corrections.stage.StageExamples.last;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.RandomBatches;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.ProximalApproximation;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.rollout.RejectionAggregation;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageExamples;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.staleness.BatchVersions;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Kinds of weights as stages. */
class WeightKindsTest {
    /** Far off policy in both directions, so that every bound is met. */
    private static final double[] FAR = {2, 1, -2, -1, 0, 3, -3, 2};

    private static Stream<RatioWeights> all() {
        return Stream.of(
                Token.defaults(),
                new Token("0.5_5.0", false),
                Sequence.defaults(),
                GeometricSequenceWeights.defaults(),
                TurnWeights.defaults(),
                TurnProductWeights.defaults(),
                MinimumPrefixWeights.defaults(),
                CumulativeWeights.defaults(),
                SingleSideCapWeights.defaults(),
                ShapedWeights.defaults(),
                InterpolatedWeights.defaults(),
                ClampedWeights.defaults(),
                new ClampedWeights(RejectionAggregation.MEAN, 0.5, 2, false));
    }

    @ParameterizedTest
    @MethodSource("all")
    void shouldActOnABatchThatIsFarOffPolicy(RatioWeights weights) {
        Decision decision = decide(facts(FAR), weights);

        assertThat(last(decision).tokensActed()).isPositive();
        assertThat(last(decision).sequencesActed()).isPositive();
        assertThat(last(decision).stage()).isEqualTo(weights.name());
        assertThat(last(decision).values()).containsKeys("mean_weight", "min_weight", "max_weight");
        for (float weight : decision.weights()) {
            assertThat(weight).isNotNegative();
        }
        weights.cap()
                .ifPresent(cap ->
                        assertThat(last(decision).values().get("max_weight")).isLessThanOrEqualTo(cap));
    }

    @ParameterizedTest
    @MethodSource("all")
    void shouldLeaveABatchOnPolicyAtOneWeightForAll(RatioWeights weights) {
        Decision decision = decide(facts(), weights);

        float expected = weights instanceof ShapedWeights shaped ? (float) (1 / (1 + shaped.gamma())) : 1f;
        assertThat(decision.weights()).containsOnly(expected);
        assertThat(last(decision).tokensActed()).isZero();
    }

    @ParameterizedTest
    @MethodSource("all")
    void shouldWeighNothingOfNothing(RatioWeights weights) {
        Decision decision = StageBatch.decide(StageExamples.starved(), List.of(weights));

        assertThat(decision.weights()).containsOnly(0f);
        assertThat(last(decision).values()).doesNotContainKey("mean_weight");
    }

    @Test
    void shouldNormaliseWhateverTheKind() {
        RandomBatches random = new RandomBatches(7);
        for (RatioWeights weights : List.of(
                new GeometricSequenceWeights(2, true),
                new TurnWeights(2, true),
                new TurnProductWeights(2, true),
                new MinimumPrefixWeights(2, true),
                new CumulativeWeights(0.025, 0.05, true),
                new SingleSideCapWeights(2, true),
                new ShapedWeights(0.1, true),
                new ClampedWeights(RejectionAggregation.TOKEN, 0.5, 2, true))) {
            for (int trial = 0; trial < 20; trial++) {
                TokenBatch batch = random.next();
                float[] behavior = random.logProbs(batch);
                StageFacts facts = StageFacts.of(batch, new double[batch.sequenceCount()])
                        .vector(StageInput.BEHAVIOR, behavior)
                        .vector(StageInput.PROXIMAL, random.near(batch, behavior, 0.3))
                        .build();
                Decision decision = StageBatch.decide(facts, List.of(weights));
                if (batch.trainedTokens() > 0) {
                    assertThat(meanWeight(batch, decision.weights(), weights)).isCloseTo(1, within(1e-5));
                }
            }
        }
    }

    /** Over tokens, or over sequences where a sequence has one weight. */
    private static double meanWeight(TokenBatch batch, float[] weights, RatioWeights kind) {
        double sum = 0;
        double count = 0;
        boolean perSequence = kind instanceof GeometricSequenceWeights;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t++) {
                double share = perSequence ? 1.0 / Math.max(1, batch.trainedTokens(s)) : 1;
                sum += batch.isTrained(t) ? weights[t] * share : 0;
                count += batch.isTrained(t) ? share : 0;
            }
        }
        return sum / count;
    }

    @Test
    void shouldInterpolateByTheVersionsBetween() {
        // versions 3, 4, 5, 5 against 7: shares 3/4, 2/3, 1/2, 1/2 of the log ratio
        Decision decision = decide(
                facts(1, -1, 1, -1, 1, -1, 0, 2), new InterpolatedWeights(ProximalApproximation.LOGLINEAR, 2.2, false));

        assertThat(decision.weights())
                .containsExactly(
                        new float[] {
                            (float) Math.exp(0.75),
                            (float) Math.exp(-0.75),
                            (float) Math.exp(2 / 3.0),
                            (float) Math.exp(-2 / 3.0),
                            (float) Math.exp(0.5),
                            (float) Math.exp(-0.5),
                            1f,
                            2.2f
                        },
                        within(1e-5f));
        assertThat(last(decision).tokensActed()).isEqualTo(1);
        assertThatThrownBy(() -> InterpolatedWeights.defaults().comparing(RatioKind.ENGINE_MISMATCH))
                .hasMessageContaining("there are none of old/behavior; take weights.kind=token");
    }

    @Test
    void shouldInterpolateProbabilitiesLinearlyWhereItIsToldTo() {
        // share 3/4 of a ratio of e: (1 - 3/4) + 3/4 e
        Decision decision =
                decide(facts(1, 0, 0, 0, 0, 0, 0, 0), new InterpolatedWeights(ProximalApproximation.LINEAR, 3, false));

        assertThat(decision.weights()[0]).isCloseTo((float) (0.25 + 0.75 * Math.E), within(1e-5f));
        assertThatThrownBy(() -> new InterpolatedWeights(ProximalApproximation.BEHAVIOR, 3, false))
                .hasMessageContaining("interpolation=behavior leaves every weight at 1");
    }

    @Test
    void shouldLeaveTokensOfTheNewestVersionsTheirWeight() {
        TokenBatch tokens = new TokenBatch(new int[] {0, 1, 2}, new byte[] {1, 1});
        Decision decision = StageBatch.decide(
                StageFacts.of(tokens, new double[2])
                        .vector(StageInput.BEHAVIOR, new float[] {-1, -1})
                        .vector(StageInput.PROXIMAL, new float[] {-0.1f, -3})
                        .versions(7, BatchVersions.wholeSequences(tokens, new long[] {7, 6}))
                        .build(),
                List.of(InterpolatedWeights.defaults()));

        assertThat(decision.weights()).containsExactly(1f, 1f);
    }

    @Test
    void shouldMoveWeightsToTheNearestBound() {
        assertThat(decide(facts(1, 0, -1, 0, 0.1, 0, 0, 0), ClampedWeights.defaults())
                        .weights())
                .containsExactly(new float[] {2, 1, 0.5f, 1, (float) Math.exp(0.1), 1, 1, 1}, within(1e-6f));
        // means 1 and -1: both tokens of the first two sequences
        assertThat(decide(
                                facts(2, 0, -2, 0, 0.1, 0, 0, 0),
                                new ClampedWeights(RejectionAggregation.MEAN, 0.5, 2, false))
                        .weights())
                .containsExactly(
                        new float[] {2, 2, 0.5f, 0.5f, (float) Math.exp(0.05), (float) Math.exp(0.05), 1, 1},
                        within(1e-6f));
    }

    @Test
    void shouldTakeTheWholeGapOrNothingWithASingleSideCap() {
        assertThat(SingleSideCapWeights.defaults().comparing(RatioKind.ANCHOR))
                .isEqualTo(SingleSideCapWeights.defaults());
        assertThatThrownBy(() -> SingleSideCapWeights.defaults().comparing(RatioKind.ENGINE_MISMATCH))
                .hasMessageContaining("take weights.kind=token");
    }

    @Test
    void shouldRefuseBoundsThatOnPolicyTokensDoNotSurvive() {
        assertThatThrownBy(() -> new TurnWeights(0.9, false))
                .hasMessageContaining("threshold must be finite and at least 1");
        assertThatThrownBy(() -> new ClampedWeights(RejectionAggregation.TOKEN, 0.5, 1, false))
                .hasMessageContaining("lower and upper must satisfy");
        assertThatThrownBy(() -> new InterpolatedWeights(ProximalApproximation.LINEAR, Double.NaN, false))
                .hasMessageContaining("threshold");
        assertThatThrownBy(() -> new CumulativeWeights(0, 1, false))
                .hasMessageContaining("low and high must be positive");
    }
}
