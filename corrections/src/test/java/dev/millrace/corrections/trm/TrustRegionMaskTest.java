package dev.millrace.corrections.trm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.RandomBatches;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

class TrustRegionMaskTest {
    private final TokenBatch batch = new TokenBatch(new int[] {0, 3, 3, 5, 6}, new byte[] {1, 0, 1, 1, 1, 0});
    private final byte[] mask = new byte[6];

    private static LogRatio ratios(double... logRatios) {
        float[] current = new float[logRatios.length];
        for (int t = 0; t < current.length; t++) {
            current[t] = (float) logRatios[t];
        }
        return LogRatio.full(current, new float[current.length]);
    }

    @Test
    void shouldRejectTheWholeSequenceForOneTokenInEitherDirection() {
        TrustRegionSummary summary = SampledTrustRegionMask.byLargestLogRatio(0.5)
                .compute(batch, ratios(0.25, Double.NaN, -0.75, 0.5, 0.5, 9), mask);

        assertThat(mask).containsExactly(0, 0, 0, 1, 1, 0);
        assertThat(summary.rejected()).isEqualTo(1);
        assertThat(summary.maskedTokens()).isEqualTo(2);
        assertThat(summary.largestTokenDivergence()).isEqualTo(0.75);
    }

    @Test
    void shouldCountTheRateOverAllSequences() {
        TrustRegionSummary summary =
                SampledTrustRegionMask.byLargestLogRatio(0.1).compute(batch, ratios(1, 0, 0, 0, 0, 0), mask);

        assertThat(summary.maskRate()).isEqualTo(0.25);
    }

    @Test
    void shouldRejectByMeanK3() {
        // k3(log 2) = 1 - log 2 = 0.307, k3(0) = 0: mean 0.153
        LogRatio ratio = ratios(Math.log(2), 5, 0, Math.log(2), Math.log(2), 0);
        TrustRegionSummary summary = new SampledTrustRegionMask(0, 0.2).compute(batch, ratio, mask);

        assertThat(mask).containsExactly(1, 0, 1, 0, 0, 0);
        assertThat(summary.meanSequenceDivergence()).isCloseTo(1.5 * (1 - Math.log(2)), within(1e-6));
    }

    @Test
    void shouldRejectByEitherOfTwoBounds() {
        new SampledTrustRegionMask(1, 0.2).compute(batch, ratios(1.5, 0, -1.5, Math.log(2), Math.log(2), 0), mask);

        assertThat(mask).containsOnly(0);
    }

    @Test
    void shouldAcceptOnPolicyBatchesAndBatchesWithoutSequences() {
        new SampledTrustRegionMask(0, 1e-9).compute(batch, ratios(0, 0, 0, 0, 0, 0), mask);
        assertThat(mask).isEqualTo(batch.mask());

        TrustRegionSummary none = new SampledTrustRegionMask(0, 1)
                .compute(new TokenBatch(new int[] {0}, new byte[0]), ratios(), new byte[0]);
        assertThat(none).isEqualTo(new TrustRegionSummary(0, 0, 0, 0, 0, 0));
        assertThat(none.maskRate()).isZero();
    }

    @Test
    void shouldRefuseMasksWithoutABoundAndNonFiniteLogProbs() {
        assertThatThrownBy(() -> new SampledTrustRegionMask(0, 0)).hasMessageContaining("needs a bound");
        assertThatThrownBy(() -> SampledTrustRegionMask.byLargestLogRatio(1)
                        .compute(batch, ratios(0, 0, 0, 0, Double.NaN, 0), mask))
                .isInstanceOf(NonFiniteLogProbException.class)
                .hasMessageContaining("sequence=2, token=1");
        assertThatThrownBy(() -> new ExactTrustRegionMask(Double.NaN, 0))
                .hasMessageContaining("max_token_kl must be positive and finite, or 0 for no such bound: NaN");
        assertThatThrownBy(() -> new ExactTrustRegionMask(0, 0)).hasMessageContaining("needs a bound, and both are 0");
    }

    @Test
    void shouldRejectMoreUnderATighterBoundOnRandomBatches() {
        RandomBatches random = new RandomBatches(3);
        for (int round = 0; round < 100; round++) {
            TokenBatch ragged = random.next();
            float[] behavior = random.logProbs(ragged);
            LogRatio ratio = LogRatio.full(random.near(ragged, behavior, 0.3), behavior);
            byte[] tight = new byte[ragged.tokenCount()];
            byte[] loose = new byte[ragged.tokenCount()];
            SampledTrustRegionMask.byLargestLogRatio(0.4).compute(ragged, ratio, tight);
            SampledTrustRegionMask.byLargestLogRatio(0.8).compute(ragged, ratio, loose);
            for (int s = 0; s < ragged.sequenceCount(); s++) {
                double largest = 0;
                for (int t = ragged.start(s); t < ragged.end(s); t++) {
                    largest = ragged.isTrained(t) ? Math.max(largest, Math.abs(ratio.at(t))) : largest;
                }
                for (int t = ragged.start(s); t < ragged.end(s); t++) {
                    assertThat(tight[t] == 1).isEqualTo(ragged.isTrained(t) && largest <= 0.4);
                    assertThat(tight[t]).isLessThanOrEqualTo(loose[t]);
                }
            }
        }
    }

    private static float[] logs(double... probabilities) {
        float[] logs = new float[probabilities.length];
        for (int i = 0; i < logs.length; i++) {
            logs[i] = (float) Math.log(probabilities[i]);
        }
        return logs;
    }

    @Test
    void shouldComputeExactDivergencesOfWholeDistributions() {
        FullDistributions stored =
                new FullDistributions(2, logs(0.5, 0.5, 1, 0, 0.5, 0.5), logs(0.25, 0.75, 1, 0, 1, 0));

        assertThat(stored.klAt(0)).isCloseTo(0.5 * Math.log(2) + 0.5 * Math.log(2.0 / 3), within(1e-7));
        assertThat(stored.totalVariationAt(0)).isCloseTo(0.25, within(1e-7));
        assertThat(stored.klAt(1)).isZero();
        assertThat(stored.klAt(2)).isEqualTo(Double.POSITIVE_INFINITY);
        assertThat(stored.totalVariationAt(2)).isCloseTo(0.5, within(1e-7));
    }

    @Test
    void shouldRejectSequencesWhoseLargestTokenKlIsAboveTheBound() {
        TokenBatch two = new TokenBatch(new int[] {0, 2, 4}, new byte[] {1, 1, 1, 0});
        float[] behavior = logs(0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5);
        float[] current = logs(0.5, 0.5, 0.4, 0.6, 0.25, 0.75, 0, 1);
        byte[] kept = new byte[4];
        TrustRegionSummary summary =
                new ExactTrustRegionMask(0.1, 0).compute(two, new FullDistributions(2, behavior, current), kept);

        assertThat(kept).containsExactly(1, 1, 0, 0);
        assertThat(summary.largestTokenDivergence()).isCloseTo(0.143841, within(1e-6));
        assertThat(summary.meanSequenceDivergence()).isCloseTo((0.020411 + 0.143841) / 2, within(1e-6));
        assertThat(summary.maskRate()).isEqualTo(0.5);

        // the first sequence's KLs are 0 and 0.020411: their mean is 0.010206
        new ExactTrustRegionMask(0, 0.0102).compute(two, new FullDistributions(2, behavior, current), kept);
        assertThat(kept).containsOnly(0);
        new ExactTrustRegionMask(0, 0.0103).compute(two, new FullDistributions(2, behavior, current), kept);
        assertThat(kept).containsExactly(1, 1, 0, 0);
    }

    @Test
    void shouldTakeTheKlOfTopKAsExactWhereTheBehaviorPolicyHasNoRest() {
        float[] rest = {Float.NEGATIVE_INFINITY, (float) Math.log(0.1)};
        TopKDistributions top = new TopKDistributions(2, logs(0.5, 0.4999, 0.5, 0.4), logs(0.2, 0.3, 0.2, 0.3), rest);

        assertThat(top.isWhole(0)).isTrue();
        assertThat(top.isWhole(1)).isFalse();
        // without the term of 1e-4 that rounding leaves between the entries' sum and 1
        assertThat(top.klAt(0)).isCloseTo(0.5 * Math.log(2.5) + 0.4999 * Math.log(0.4999 / 0.3), within(1e-7));
        assertThat(top.klAt(1))
                .isCloseTo(0.5 * Math.log(2.5) + 0.4 * Math.log(0.4 / 0.3) + 0.1 * Math.log(0.1 / 0.5), within(1e-6));
        assertThat(new TopKDistributions(2, logs(0.5, 0.5), logs(0.5, 0.5)).isWhole(0))
                .isFalse();
        assertThatThrownBy(() -> new TopKDistributions(2, logs(0.5, 0.5), logs(0.5, 0.5), rest))
                .hasMessageContaining("rest=2");
    }

    @Test
    void shouldNeverOverstateDivergencesFromTopK() {
        Random random = new Random(5);
        for (int round = 0; round < 500; round++) {
            int vocabulary = 2 + random.nextInt(30);
            float[] behavior = distribution(random, vocabulary);
            float[] current = distribution(random, vocabulary);
            FullDistributions whole = new FullDistributions(vocabulary, behavior, current);
            double previous = 0;
            for (int k = 1; k <= vocabulary; k++) {
                TopKDistributions top = new TopKDistributions(k, Arrays.copyOf(behavior, k), Arrays.copyOf(current, k));
                assertThat(top.klAt(0)).isLessThanOrEqualTo(whole.klAt(0) + 1e-5);
                assertThat(top.totalVariationAt(0)).isLessThanOrEqualTo(whole.totalVariationAt(0) + 1e-5);
                assertThat(top.klAt(0)).isGreaterThanOrEqualTo(previous - 1e-5);
                previous = top.klAt(0);
            }
            assertThat(previous).isCloseTo(whole.klAt(0), within(1e-4));
        }
    }

    private static float[] distribution(Random random, int size) {
        double[] weights = random.doubles(size).map(u -> Math.pow(u, 4) + 1e-3).toArray();
        double sum = Arrays.stream(weights).sum();
        return logs(Arrays.stream(weights).map(w -> w / sum).toArray());
    }

    @Test
    void shouldStayFiniteWhereTheRestOfTheCurrentPolicyIsBelowResolution() {
        TopKDistributions top = new TopKDistributions(1, logs(0.9), logs(1.0));

        // 0.9 log 0.9 + 0.1 log(0.1 / 1e-6)
        assertThat(top.klAt(0)).isCloseTo(0.9 * Math.log(0.9) + 0.1 * Math.log(1e5), within(1e-6));
    }

    @Test
    void shouldNameSequenceAndTokenOfWhatIsNoDistribution() {
        TokenBatch two = new TokenBatch(new int[] {0, 1, 2}, new byte[] {1, 1});
        float[] fine = logs(0.5, 0.5, 0.5, 0.5);

        assertThatThrownBy(() -> new ExactTrustRegionMask(1, 0)
                        .compute(two, new FullDistributions(2, fine, logs(0.5, 0.5, 0.2, 0.2)), new byte[2]))
                .hasMessageContaining("current policy must sum to 1")
                .hasMessageContaining("sequence=1, token=0");
        assertThatThrownBy(() -> new ExactTrustRegionMask(1, 0)
                        .compute(two, new TopKDistributions(2, fine, logs(0.5, 0.5, 0.9, 0.9)), new byte[2]))
                .hasMessageContaining("must not exceed 1")
                .hasMessageContaining("sequence=1, token=0");
        assertThatThrownBy(() -> new FullDistributions(2, new float[] {Float.NaN, 0f}, new float[2]).klAt(0))
                .hasMessageContaining("NaN");
        assertThatThrownBy(() -> new FullDistributions(3, new float[4], new float[4]))
                .hasMessageContaining("vocabulary=3");
        assertThatThrownBy(() -> new TopKDistributions(0, new float[4], new float[4]))
                .hasMessageContaining("k=0");
        assertThatThrownBy(() ->
                        new ExactTrustRegionMask(1, 0).compute(two, new FullDistributions(4, fine, fine), new byte[2]))
                .hasMessageContaining("distributions");
    }
}
