package dev.millrace.corrections.filter;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.RandomBatches;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.filter.DivergenceFilter.Action;
import dev.millrace.corrections.filter.DivergenceFilter.Metric;
import dev.millrace.corrections.golden.GoldenAssertions;
import dev.millrace.corrections.golden.GoldenCase;
import dev.millrace.corrections.golden.GoldenCases;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.RejectionAggregation;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class DivergenceFilterTest {
    private static final RejectionAggregation TOKEN = RejectionAggregation.TOKEN;

    private final TokenBatch batch = new TokenBatch(new int[] {0, 3, 3, 5}, new byte[] {1, 0, 1, 1, 1});
    private final byte[] mask = new byte[5];
    private final float[] weights = new float[5];

    private FilterSummary run(DivergenceFilter filter, double... logRatios) {
        float[] proximal = new float[logRatios.length];
        for (int t = 0; t < proximal.length; t++) {
            proximal[t] = (float) logRatios[t];
        }
        return filter.compute(batch, LogRatio.anchor(proximal, new float[proximal.length]), mask, weights);
    }

    private static DivergenceFilter filter(
            Metric metric, RejectionAggregation level, Action action, Double lower, double upper) {
        return new DivergenceFilter(
                metric, level, action, lower == null ? OptionalDouble.empty() : OptionalDouble.of(lower), upper);
    }

    @Test
    void shouldMaskTokensOutsideTheBoundsOfTheRatio() {
        FilterSummary summary = run(filter(Metric.RATIO, TOKEN, Action.MASK, 0.5, 2), 1, Double.NaN, 0, -1, 0.5);

        assertThat(mask).containsExactly(0, 0, 1, 0, 1);
        assertThat(weights).containsExactly(0f, 0f, 1f, 0f, (float) Math.exp(0.5));
        assertThat(summary).isEqualTo(new FilterSummary(4, 2));
        assertThat(summary.changedFraction()).isEqualTo(0.5);
    }

    @Test
    void shouldTruncateWeightsOfTokensAndKeepTheMask() {
        FilterSummary summary = run(filter(Metric.RATIO, TOKEN, Action.TRUNCATE, 0.5, 2), 1, Double.NaN, 0, -1, 0.5);

        assertThat(mask).isEqualTo(batch.mask());
        assertThat(weights).containsExactly(2f, 0f, 1f, 0.5f, (float) Math.exp(0.5));
        assertThat(summary.changedTokens()).isEqualTo(2);
    }

    @Test
    void shouldShareTheGeometricMeanWithinASequence() {
        FilterSummary summary =
                run(filter(Metric.RATIO, RejectionAggregation.MEAN, Action.MASK, null, 2), 0.5, 9, 0.25, 1, 0.5);

        assertThat(mask).containsExactly(1, 0, 1, 0, 0);
        assertThat(weights).containsExactly((float) Math.exp(0.375), 0f, (float) Math.exp(0.375), 0f, 0f);
        assertThat(summary.changedTokens()).isEqualTo(2);
    }

    @Test
    void shouldTruncateOnlyTheWeightOfSequencesOutsideTheBounds() {
        // means 0.375 (its largest, 0.5, is inside) and 0.75 (its largest, 1, is not: truncated to log 2)
        run(filter(Metric.RATIO, RejectionAggregation.MAX, Action.TRUNCATE, null, 2), 0.5, 9, 0.25, 1, 0.5);

        assertThat(weights).containsExactly((float) Math.exp(0.375), 0f, (float) Math.exp(0.375), 2f, 2f);
    }

    @Test
    void shouldNotCountASequenceOutsideWhoseMeanNeedsNoTruncation() {
        FilterSummary summary =
                run(filter(Metric.RATIO, RejectionAggregation.SUM, Action.TRUNCATE, null, 2), 0.5, 9, 0.5, 0, 0);

        assertThat(weights).containsExactly((float) Math.exp(0.5), 0f, (float) Math.exp(0.5), 1f, 1f);
        assertThat(summary.changedTokens()).isZero();
    }

    @Test
    void shouldTakeK1WithTheSignOfTheLogRatio() {
        run(filter(Metric.K1, TOKEN, Action.MASK, -0.25, 0.5), 0.5, 9, 0.75, -0.25, -0.5);

        assertThat(mask).containsExactly(1, 0, 0, 1, 0);
    }

    @Test
    void shouldSumK2AndTakeTheLargestK3() {
        run(filter(Metric.K2, RejectionAggregation.SUM, Action.MASK, null, 1.0), 1, 9, -1, 1, 1.5);
        assertThat(mask).containsExactly(1, 0, 1, 0, 0);

        // k3(1) = e^-1 = 0.37, k3(-1) = e - 2 = 0.72, k3(1.5) = 0.72
        run(filter(Metric.K3, RejectionAggregation.MAX, Action.MASK, null, 0.7), 1, 9, -1, 1, 0);
        assertThat(mask).containsExactly(0, 0, 0, 1, 1);
    }

    @Test
    void shouldIncludeBounds() {
        run(filter(Metric.RATIO, TOKEN, Action.MASK, 1.0, 2), 0, 9, 0, 0, -1e-6);

        assertThat(mask).containsExactly(1, 0, 1, 1, 0);
    }

    @Test
    void shouldBoundWeightsByTheLargestFloat() {
        run(filter(Metric.K1, RejectionAggregation.MEAN, Action.MASK, null, 1), 200, 9, -200, 0, 0);

        assertThat(weights[0]).isBetween(3.4e38f, Float.MAX_VALUE);
        assertThat(weights[2]).isZero();
        assertThat(mask[2]).isEqualTo((byte) 1);
    }

    @Test
    void shouldRefuseWhatTheReferenceRefuses() {
        assertThatThrownBy(() -> filter(Metric.RATIO, TOKEN, Action.MASK, null, 1))
                .hasMessageContaining("upper=1.0");
        assertThatThrownBy(() -> filter(Metric.RATIO, TOKEN, Action.MASK, 0.0, 2))
                .hasMessageContaining("lower=0.0");
        assertThatThrownBy(() -> filter(Metric.K1, TOKEN, Action.MASK, 0.5, 0.2))
                .hasMessageContaining("lower <= upper");
        assertThatThrownBy(() -> filter(Metric.K2, TOKEN, Action.MASK, null, 0)).hasMessageContaining("K2");
        assertThatThrownBy(() -> filter(Metric.K3, TOKEN, Action.MASK, null, -1))
                .hasMessageContaining("K3");
        assertThatThrownBy(() -> filter(Metric.K2, TOKEN, Action.TRUNCATE, null, 1))
                .hasMessageContaining("mask instead");
        assertThatThrownBy(() -> filter(Metric.K1, TOKEN, Action.MASK, null, Double.NaN))
                .hasMessageContaining("finite");
    }

    @Test
    void shouldRefuseNonFiniteRatiosInsteadOfTakingThemForOnPolicy() {
        assertThatThrownBy(() -> run(filter(Metric.RATIO, TOKEN, Action.MASK, null, 2), 0, 0, 0, 0, Double.NaN))
                .isInstanceOf(NonFiniteLogProbException.class)
                .hasMessageContaining("sequence=2, token=1");
    }

    static List<GoldenCase> golden() {
        return GoldenCases.of("areal_rejection").stream()
                .filter(c -> !c.expectsError())
                .toList();
    }

    @ParameterizedTest
    @MethodSource("golden")
    void shouldAgreeWithTheReference(GoldenCase golden) {
        JsonNode config = golden.config();
        DivergenceFilter filter = filter(
                Metric.valueOf(config.path("metric").asText().replace("kl_", "").toUpperCase()),
                config.path("level").asText().equals("token")
                        ? TOKEN
                        : RejectionAggregation.valueOf(
                                config.path("agg").asText().toUpperCase()),
                config.path("action").asText().equals("mask") ? Action.MASK : Action.TRUNCATE,
                config.path("lower").isNumber() ? config.path("lower").asDouble() : null,
                config.path("upper").asDouble());
        TokenBatch layout = golden.batch();
        byte[] kept = new byte[layout.tokenCount()];
        float[] behaviorWeights = new float[layout.tokenCount()];
        FilterSummary summary = filter.compute(
                layout,
                LogRatio.anchor(golden.tokens("old_logprobs"), golden.tokens("rollout_logprobs")),
                kept,
                behaviorWeights);

        GoldenAssertions.assertMatches(
                golden,
                Map.of(
                        "loss_mask",
                        kept,
                        "behave_imp_weight",
                        behaviorWeights,
                        "metrics",
                        Map.of("filtered_fraction", summary.changedFraction())));
    }

    @Test
    void shouldKeepMoreUnderLooserBoundsAndIgnoreTheOrderOfSequences() {
        RandomBatches random = new RandomBatches(7);
        for (int round = 0; round < 100; round++) {
            TokenBatch ragged = random.next();
            float[] behavior = random.logProbs(ragged);
            LogRatio ratio = LogRatio.anchor(random.near(ragged, behavior, 0.5), behavior);
            for (RejectionAggregation level : List.of(TOKEN, RejectionAggregation.MEAN, RejectionAggregation.MAX)) {
                byte[] tight = new byte[ragged.tokenCount()];
                byte[] loose = new byte[ragged.tokenCount()];
                float[] unused = new float[ragged.tokenCount()];
                filter(Metric.RATIO, level, Action.MASK, 0.7, 1.3).compute(ragged, ratio, tight, unused);
                filter(Metric.RATIO, level, Action.MASK, 0.5, 2).compute(ragged, ratio, loose, unused);
                for (int t = 0; t < tight.length; t++) {
                    assertThat(tight[t]).isLessThanOrEqualTo(loose[t]);
                    assertThat(loose[t]).isLessThanOrEqualTo((byte) (ragged.isTrained(t) ? 1 : 0));
                }
            }
        }
    }
}
