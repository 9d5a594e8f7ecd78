package dev.millrace.corrections.rollout;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.RandomBatches;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.algorithm.Preset;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.TokenBlock;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig.ObjectiveMode;
import dev.millrace.corrections.weights.BatchNormalizedWeights;
import dev.millrace.corrections.weights.SequenceBandWeights;
import dev.millrace.corrections.weights.SequenceTruncatedWeights;
import dev.millrace.corrections.weights.TokenBandWeights;
import dev.millrace.corrections.weights.TokenTruncatedWeights;
import dev.millrace.corrections.weights.WeightMethod;
import dev.millrace.corrections.weights.WeightSummary;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class RolloutCorrectionTest {
    private static final RolloutCorrection TOKEN_TIS_K3 =
            new RolloutCorrection(Preset.DECOUPLED_K3_RS_TOKEN_TIS.settings().resolve());

    private static RolloutCorrection weighted(WeightRule rule, boolean normalize) {
        return new RolloutCorrection(new RolloutCorrectionConfig(
                Optional.of(rule), normalize, List.of(), ObjectiveMode.DECOUPLED, Semantics.MILLRACE));
    }

    private static RolloutCorrection rejecting(RejectionRule... rules) {
        return new RolloutCorrection(new RolloutCorrectionConfig(
                Optional.empty(), false, List.of(rules), ObjectiveMode.DECOUPLED, Semantics.MILLRACE));
    }

    private static boolean hasTrained(TokenBatch batch) {
        return batch.trainedTokens() > 0;
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
    void shouldWeighAsTheWeightMethodsDo() {
        Map<WeightRule, WeightMethod> twins = Map.of(
                new WeightRule.Truncate(WeightRule.Level.TOKEN, 2), new TokenTruncatedWeights(2),
                new WeightRule.Truncate(WeightRule.Level.SEQUENCE, 2), new SequenceTruncatedWeights(2),
                new WeightRule.Band(WeightRule.Level.TOKEN, 0.8, 1.5), new TokenBandWeights(0.8, 1.5),
                new WeightRule.Band(WeightRule.Level.SEQUENCE, 0.8, 1.5), new SequenceBandWeights(0.8, 1.5));
        for (long seed = 0; seed < 150; seed++) {
            RandomBatches random = new RandomBatches(seed);
            TokenBatch batch = random.next();
            float[] behavior = random.logProbs(batch);
            float[] old = random.near(batch, behavior, seed % 3 == 0 ? 9 : 0.3);
            if (!hasTrained(batch)) {
                continue;
            }
            LogRatio ratio = LogRatio.anchor(old, behavior);
            twins.forEach((rule, method) -> {
                assertSameWeights(batch, ratio, weighted(rule, false), method);
                assertSameWeights(batch, ratio, weighted(rule, true), new BatchNormalizedWeights(method));
            });
        }
    }

    private static void assertSameWeights(
            TokenBatch batch, LogRatio ratio, RolloutCorrection correction, WeightMethod method) {
        float[] expected = new float[batch.tokenCount()];
        WeightSummary summary = method.compute(batch, ratio, expected);

        RolloutCorrectionResult result = correction.apply(batch, ratio);

        float[] weights = result.weights().orElseThrow();
        for (int t = 0; t < weights.length; t++) {
            assertThat(weights[t]).isCloseTo(expected[t], within(2 * Math.ulp(expected[t])));
        }
        assertThat(result.mask()).isEqualTo(batch.mask());
        if (!correction.config().batchNormalize()) {
            assertThat(result.metrics().get("rollout_corr/rollout_is_mean"))
                    .isCloseTo(
                            summary.weight().mean(),
                            within(1e-12 * summary.weight().mean()));
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldRejectExactlyWhatTheRejectionDoes(RejectionMode mode) {
        for (long seed = 0; seed < 150; seed++) {
            RandomBatches random = new RandomBatches(seed);
            TokenBatch batch = random.next();
            float[] behavior = random.logProbs(batch);
            float[] old = random.near(batch, behavior, 0.3);
            if (!hasTrained(batch)) {
                continue;
            }
            LogRatio ratio = LogRatio.anchor(old, behavior);
            RejectionRule rule =
                    mode.isTwoSided() ? RejectionRule.ratioBand(mode, 0.8, 1.2) : RejectionRule.atMost(mode, 0.05);
            byte[] expected = NaiveRejection.mask(batch, ratio, rule);
            int rejected = batch.trainedTokens() - sum(expected);

            RolloutCorrectionResult result = rejecting(rule).apply(batch, ratio);

            assertThat(result.mask()).isEqualTo(expected);
            assertThat(result.rejectedTokens()).isEqualTo(rejected);
            assertThat(result.metrics().get("rollout_corr/rollout_rs_masked_fraction"))
                    .isEqualTo(rejected / (double) batch.trainedTokens());
        }
    }

    private static int sum(byte[] mask) {
        int sum = 0;
        for (byte trained : mask) {
            sum += trained;
        }
        return sum;
    }

    @Test
    void shouldDecideExactlyForStatisticsOnTheBound() {
        // bounds that are the statistic itself, and the next double below it
        Random random = new Random(3);
        for (int round = 0; round < 300; round++) {
            int tokens = 1 + random.nextInt(40);
            byte[] mask = new byte[tokens];
            Arrays.fill(mask, (byte) 1);
            TokenBatch batch = new TokenBatch(new int[] {0, tokens}, mask);
            float[] old = new float[tokens];
            for (int t = 0; t < tokens; t++) {
                old[t] = (float) (0.5 * random.nextGaussian());
            }
            LogRatio ratio = LogRatio.anchor(old, new float[tokens]);
            double statistic = 0;
            for (int t = 0; t < tokens; t++) {
                statistic += StrictMath.expm1((double) old[t]) - old[t];
            }
            byte[] all = rejecting(RejectionRule.atMost(RejectionMode.SEQ_SUM_K3, statistic))
                    .apply(batch, ratio)
                    .mask();
            byte[] none = rejecting(RejectionRule.atMost(RejectionMode.SEQ_SUM_K3, Math.nextDown(statistic)))
                    .apply(batch, ratio)
                    .mask();

            assertThat(all).containsOnly(1);
            assertThat(none).containsOnly(0);
        }
    }

    @Test
    void shouldNotDependOnPaddingOrOnTheOrderOfSequences() {
        float[] old = {-0.5f, -1f, -2f, -0.1f};
        float[] behavior = {-0.6f, -0.9f, -1.5f, -0.2f};
        RolloutCorrectionResult plain = TOKEN_TIS_K3.apply(
                new TokenBatch(new int[] {0, 3, 4}, new byte[] {1, 1, 1, 1}), LogRatio.anchor(old, behavior));

        RolloutCorrectionResult padded = TOKEN_TIS_K3.apply(
                new TokenBatch(new int[] {0, 2, 2, 7}, new byte[] {1, 0, 1, 0, 1, 1, 0}),
                LogRatio.anchor(
                        new float[] {-0.1f, Float.NaN, -0.5f, 1e30f, -1f, -2f, 0f},
                        new float[] {-0.2f, 0f, -0.6f, Float.POSITIVE_INFINITY, -0.9f, -1.5f, 0f}));

        plain.metrics()
                .forEach((name, value) -> assertThat(padded.metrics().get(name))
                        .as(name)
                        .isCloseTo(value, within(1e-12 + 1e-12 * Math.abs(value))));
        assertThat(padded.weights().orElseThrow())
                .containsExactly(
                        plain.weights().orElseThrow()[3],
                        0f,
                        plain.weights().orElseThrow()[0],
                        0f,
                        plain.weights().orElseThrow()[1],
                        plain.weights().orElseThrow()[2],
                        0f);
    }

    @Test
    void shouldBeTheIdentityOnPolicy() {
        for (Preset preset : Preset.values()) {
            RandomBatches random = new RandomBatches(5);
            TokenBatch batch = random.next();
            float[] logProbs = random.logProbs(batch);

            RolloutCorrectionResult result = new RolloutCorrection(
                            preset.settings().resolve())
                    .apply(batch, LogRatio.anchor(logProbs, logProbs));

            assertThat(result.mask()).isEqualTo(batch.mask());
            assertThat(result.rejectedTokens()).isZero();
            assertThat(result.metrics().get("rollout_corr/kl")).isZero();
            assertThat(result.metrics().get("rollout_corr/chi2_seq")).isZero();
            result.weights().ifPresent(weights -> {
                for (int t = 0; t < weights.length; t++) {
                    assertThat(weights[t]).isEqualTo(batch.isTrained(t) ? 1f : 0f);
                }
            });
        }
    }

    @Test
    void shouldLeaveSequencesWithoutTrainedTokensOutOfSequenceMeansUnlessAskedForTheReference() {
        // one sequence of perplexity e^2 / e^1, one fully masked
        TokenBatch batch = new TokenBatch(new int[] {0, 1, 2}, new byte[] {1, 0});
        LogRatio ratio = LogRatio.anchor(new float[] {-2f, -5f}, new float[] {-1f, -9f});

        Map<String, Double> ours = metrics(Semantics.MILLRACE, batch, ratio);
        Map<String, Double> reference = metrics(Semantics.VERL_REFERENCE, batch, ratio);

        assertThat(ours.get("training_ppl")).isCloseTo(Math.exp(2), within(1e-12));
        assertThat(reference.get("training_ppl")).isCloseTo((Math.exp(2) + 1) / 2, within(1e-6));
        assertThat(ours.get("log_ppl_diff")).isCloseTo(1, within(1e-12));
        assertThat(reference.get("log_ppl_diff")).isCloseTo(0.5, within(1e-6));
        assertThat(ours.get("chi2_seq")).isCloseTo(Math.exp(-2) - 1, within(1e-12));
    }

    @Test
    void shouldDefineTheSampleSizeOfWeightsThatAreAllZeroWhereTheReferenceDividesByZero() {
        TokenBatch batch = new TokenBatch(new int[] {0, 1}, new byte[] {1});
        LogRatio ratio = LogRatio.anchor(new float[] {-1f}, new float[] {-9f});
        RolloutCorrectionSettings icepop = Preset.DECOUPLED_TOKEN_ICEPOP.settings();

        RolloutCorrectionResult result = new RolloutCorrection(icepop.resolve()).apply(batch, ratio);

        assertThat(result.metrics().get("rollout_corr/rollout_is_eff_sample_size"))
                .isZero();
        assertThatThrownBy(() -> new RolloutCorrection(icepop.resolve(Semantics.VERL_REFERENCE)).apply(batch, ratio))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("every weight is 0");
    }

    @Test
    void shouldBoundRatiosButNotTheMetricThatNeedsThemWhole() {
        TokenBatch batch = new TokenBatch(new int[] {0, 2}, new byte[] {1, 1});
        LogRatio ratio = LogRatio.anchor(new float[] {0f, 0f}, new float[] {-30f, 0f});

        Map<String, Double> metrics = metrics(Semantics.MILLRACE, batch, ratio);

        assertThat(metrics.get("chi2_token")).isCloseTo((Math.exp(40) + 1) / 2 - 1, within(1e4));
        assertThat(metrics.get("k3_kl")).isCloseTo((Math.expm1(30) - 30) / 2, within(1.0));
    }

    @Test
    void shouldRefuseABatchWithNothingToCorrect() {
        TokenBatch masked = new TokenBatch(new int[] {0, 2}, new byte[2]);
        TokenBatch empty = new TokenBatch(new int[] {0}, new byte[0]);

        assertThatThrownBy(() -> TOKEN_TIS_K3.apply(masked, LogRatio.anchor(new float[2], new float[2])))
                .hasMessage("a correction needs at least one trained token: sequences=1, tokens=2");
        assertThatThrownBy(() -> TOKEN_TIS_K3.apply(empty, LogRatio.anchor(new float[0], new float[0])))
                .hasMessageContaining("sequences=0");
    }

    @Test
    void shouldNameSequenceAndTokenOfNonFiniteLogProbInAnyBlock() {
        int length = 3 * TokenBlock.CAPACITY;
        byte[] mask = new byte[2 * length];
        Arrays.fill(mask, (byte) 1);
        mask[5] = 0;
        TokenBatch batch = new TokenBatch(new int[] {0, length, 2 * length}, mask);
        float[] behavior = new float[2 * length];
        behavior[length + 700] = Float.POSITIVE_INFINITY;
        LogRatio ratio = LogRatio.anchor(new float[2 * length], behavior);

        assertThatThrownBy(() -> TOKEN_TIS_K3.apply(batch, ratio))
                .isInstanceOf(NonFiniteLogProbException.class)
                .hasMessageStartingWith("behavior log-probs must be finite at trained tokens: sequence=1, token=700,");
    }
}
