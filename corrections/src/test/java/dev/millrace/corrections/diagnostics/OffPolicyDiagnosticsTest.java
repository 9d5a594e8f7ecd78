package dev.millrace.corrections.diagnostics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.RandomBatches;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.algorithm.Preset;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.RolloutCorrection;
import dev.millrace.corrections.rollout.Semantics;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.VersionSpan;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class OffPolicyDiagnosticsTest {
    private static float[] logs(double... probabilities) {
        float[] logs = new float[probabilities.length];
        for (int t = 0; t < logs.length; t++) {
            logs[t] = (float) Math.log(probabilities[t]);
        }
        return logs;
    }

    /** Those of a correction without weights and rejections. */
    private static Map<String, Double> metrics(Semantics semantics, TokenBatch batch, LogRatio ratio) {
        Map<String, Double> metrics = new HashMap<>();
        new RolloutCorrection(Preset.DISABLED.settings().resolve(semantics))
                .apply(batch, ratio)
                .metrics()
                .forEach((name, value) -> metrics.put(name.replace("rollout_corr/", ""), value));
        return metrics;
    }

    @Test
    void shouldComputeEveryNumberByHand() {
        // one sequence of two tokens: p = 0.5, 0.2; q = 0.2, 0.4; rho = 2.5, 0.5
        TokenBatch batch = new TokenBatch(new int[] {0, 2}, new byte[] {1, 1});
        PolicyGap gap = OffPolicyDiagnostics.compute(batch, LogRatio.anchor(logs(0.5, 0.2), logs(0.2, 0.4)))
                .all();

        assertThat(gap.tokens()).isEqualTo(2);
        assertThat(gap.sequences()).isEqualTo(1);
        assertThat(gap.divergence().kl()).isCloseTo(-Math.log(1.25) / 2, within(1e-7));
        assertThat(gap.divergence().k3()).isCloseTo((3.0 - 2.0 - Math.log(1.25)) / 2, within(1e-7));
        assertThat(gap.divergence().chiSquareToken()).isCloseTo((6.25 + 0.25) / 2 - 1, within(1e-6));
        assertThat(gap.divergence().chiSquareSequence()).isCloseTo(1.25 * 1.25 - 1, within(1e-6));
        assertThat(gap.perplexityRatio()).isCloseTo(Math.sqrt(0.8), within(1e-6));
        assertThat(gap.weights().mean()).isCloseTo(1.5, within(1e-6));
        assertThat(gap.weights().standardDeviation()).isCloseTo(1, within(1e-6));
        assertThat(gap.weights().effectiveSampleSize()).isCloseTo(2.25 / 3.25, within(1e-6));
        assertThat(gap.weights().sequenceEffectiveSampleSize()).isCloseTo(1, within(1e-12));
        assertThat(gap.probabilities().meanDifference()).isCloseTo(0.25, within(1e-7));
        assertThat(gap.probabilities().maxDifference()).isCloseTo(0.3, within(1e-7));
        assertThat(gap.probabilities().differenceDeviation()).isCloseTo(0.1 / Math.sqrt(2), within(1e-7));
        assertThat(gap.probabilities().pearson().orElseThrow()).isCloseTo(-1, within(1e-9));
    }

    @Test
    void shouldAgreeWithTheMetricsOnRandomBatches() {
        for (long seed = 0; seed < 60; seed++) {
            RandomBatches random = new RandomBatches(seed);
            TokenBatch batch = random.next();
            float[] behavior = random.logProbs(batch);
            LogRatio ratio = LogRatio.anchor(random.near(batch, behavior, 0.4), behavior);
            PolicyGap gap = OffPolicyDiagnostics.compute(batch, ratio).all();
            if (batch.trainedTokens() == 0) {
                assertThat(gap.tokens()).isZero();
                assertThat(gap.weights().effectiveSampleSize()).isZero();
                continue;
            }
            Map<String, Double> metrics = metrics(Semantics.MILLRACE, batch, ratio);

            assertThat(gap.divergence().kl()).isCloseTo(metrics.get("kl"), within(1e-12));
            assertThat(gap.divergence().k3()).isCloseTo(metrics.get("k3_kl"), within(1e-12));
            assertThat(gap.divergence().chiSquareToken()).isCloseTo(metrics.get("chi2_token"), within(1e-10));
            assertThat(gap.divergence().chiSquareSequence())
                    .isCloseTo(metrics.get("chi2_seq"), within(1e-10 * (2 + Math.abs(metrics.get("chi2_seq")))));
            assertThat(gap.perplexityRatio()).isCloseTo(metrics.get("ppl_ratio"), within(1e-10));
            assertThat(gap.weights().effectiveSampleSize()).isPositive().isLessThanOrEqualTo(1);
            assertThat(gap.weights().sequenceEffectiveSampleSize()).isPositive().isLessThanOrEqualTo(1);
        }
    }

    @Test
    void shouldSplitByLagWithinASequence() {
        // versions 5 5 3 | 3, at version 5: lag 0 has ratios 2 and 1, lag 2 has 4 and 1
        TokenBatch batch = new TokenBatch(new int[] {0, 3, 4}, new byte[] {1, 1, 1, 1});
        BatchVersions versions = new BatchVersions(
                batch,
                List.of(
                        List.of(new VersionSpan(5, 0, 2), new VersionSpan(3, 2, 3)),
                        List.of(new VersionSpan(3, 0, 1))));
        LogRatio ratio = LogRatio.anchor(logs(0.8, 0.5, 0.8, 0.5), logs(0.4, 0.5, 0.2, 0.5));

        OffPolicyReport report = OffPolicyDiagnostics.compute(versions, 5, ratio);

        assertThat(report.byLag().keySet()).containsExactly(0L, 2L);
        assertThat(report.byLag().get(0L).tokens()).isEqualTo(2);
        assertThat(report.byLag().get(0L).sequences()).isEqualTo(1);
        assertThat(report.byLag().get(0L).weights().mean()).isCloseTo(1.5, within(1e-6));
        assertThat(report.byLag().get(2L).sequences()).isEqualTo(2);
        assertThat(report.byLag().get(2L).weights().mean()).isCloseTo(2.5, within(1e-6));
        assertThat(report.byLag().get(2L).divergence().chiSquareSequence()).isCloseTo((16 + 1) / 2.0 - 1, within(1e-5));
        assertThat(report.all())
                .usingRecursiveComparison()
                .withEqualsForType((a, b) -> Math.abs(a - b) <= 1e-12, Double.class)
                .isEqualTo(OffPolicyDiagnostics.compute(batch, ratio)
                        .all()); // blocks end where versions do, so sums have another order
        assertThatThrownBy(() -> OffPolicyDiagnostics.compute(versions, 4, ratio))
                .hasMessageContaining("newer than the current version");
    }

    @Test
    void shouldGiveTheSameWithoutProbabilitiesSaveThese() {
        RandomBatches random = new RandomBatches(3);
        for (int round = 0; round < 30; round++) {
            TokenBatch batch = random.next();
            float[] behavior = random.logProbs(batch);
            LogRatio ratio = LogRatio.anchor(random.near(batch, behavior, 0.4), behavior);
            BatchVersions versions = BatchVersions.wholeSequences(batch, new long[batch.sequenceCount()]);
            OffPolicyReport whole = OffPolicyDiagnostics.compute(versions, 2, ratio);
            OffPolicyReport ratios = OffPolicyDiagnostics.computeRatios(versions, 2, ratio);

            assertThat(ratios)
                    .usingRecursiveComparison()
                    .ignoringFieldsMatchingRegexes(".*probabilities")
                    .isEqualTo(whole);
            assertThat(ratios.all().probabilities().pearson()).isEmpty();
        }
    }

    @Test
    void shouldLeaveTheCorrelationOfConstantProbabilitiesOpen() {
        TokenBatch batch = new TokenBatch(new int[] {0, 3}, new byte[] {1, 1, 1});

        assertThat(OffPolicyDiagnostics.compute(batch, LogRatio.anchor(logs(0.5, 0.5, 0.5), logs(0.1, 0.2, 0.3)))
                        .all()
                        .probabilities()
                        .pearson())
                .isEmpty();
        assertThat(OffPolicyDiagnostics.compute(batch, LogRatio.anchor(logs(0.1, 0.2, 0.3), logs(0.1, 0.2, 0.3)))
                        .all()
                        .probabilities()
                        .pearson()
                        .orElseThrow())
                .isCloseTo(1, within(1e-12));
    }

    @Test
    void shouldKeepTheSampleSizeOfLongSequencesFiniteAndPositive() {
        int length = 5000;
        byte[] mask = new byte[2 * length];
        java.util.Arrays.fill(mask, (byte) 1);
        float[] old = new float[2 * length];
        java.util.Arrays.fill(old, 0, length, 1f); // log weights 5000 and 0
        PolicyGap gap = OffPolicyDiagnostics.compute(
                        new TokenBatch(new int[] {0, length, 2 * length}, mask),
                        LogRatio.anchor(old, new float[2 * length]))
                .all();

        assertThat(gap.weights().sequenceEffectiveSampleSize()).isCloseTo(0.5, within(1e-12));
    }
}
