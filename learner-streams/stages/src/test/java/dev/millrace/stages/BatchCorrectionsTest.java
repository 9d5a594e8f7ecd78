package dev.millrace.stages;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.schemas.StageReport;
import org.junit.jupiter.api.Test;

/** Two groups of two sequences of two tokens; log ratios of proximal to behavior as each test says. */
class BatchCorrectionsTest {
    private static final M2poMaskConfig NO_M2PO = new M2poMaskConfig(false, 0.04, false);
    private static final double[] REWARDS = {1, 0, 1, 0};

    private static CorrectionConfig config(
            RolloutCorrectionOptions options,
            StalenessConfig staleness,
            SequenceMaskConfig sequenceMask,
            M2poMaskConfig m2po) {
        return new CorrectionConfig(
                options,
                AdvantageConfig.defaults(),
                staleness,
                sequenceMask,
                m2po,
                EssConfig.defaults(),
                MissingOldLogProbs.RECOMPUTE);
    }

    private static CorrectionConfig config(RolloutCorrectionOptions options) {
        return config(options, StalenessConfig.defaults(), SequenceMaskConfig.defaults(), NO_M2PO);
    }

    private static RolloutCorrectionOptions rejecting(String rolloutRs, String threshold) {
        return new RolloutCorrectionOptions("", ComparedPolicies.ANCHOR, "token", "2.0", rolloutRs, threshold);
    }

    private static BatchVerdict decide(CorrectionConfig config, float... logRatios) {
        TokenBatch tokens =
                new TokenBatch(new int[] {0, 2, 4, 6, 8}, new byte[] {1, 1, 1, 1, 1, 1, 1, 1}, new int[] {0, 0, 1, 1});
        float[] behavior = new float[8];
        float[] proximal = new float[8];
        for (int t = 0; t < 8; t++) {
            behavior[t] = -1f;
            proximal[t] = -1f + logRatios[t];
        }
        return new BatchCorrections(config)
                .decide(new BatchInput(
                        tokens,
                        new MemberLogProbs(behavior, behavior, proximal),
                        new boolean[4],
                        REWARDS,
                        BatchVersions.wholeSequences(tokens, new long[] {3, 4, 5, 5}),
                        new long[] {5, 5, 6, 6},
                        new long[] {1000, 2000, 3000, 4000},
                        7));
    }

    private static StageReport report(BatchVerdict verdict, String stage) {
        return verdict.reports().stream()
                .filter(r -> r.getStage().equals(stage))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void shouldTellStalenessInFlightFromStalenessInTheQueue() {
        BatchVerdict verdict = decide(config(RolloutCorrectionOptions.defaults()), new float[8]);
        StageReport staleness = report(verdict, "staleness");
        assertThat(staleness.getValues().get("mean")).isEqualTo((4 + 3 + 2 + 2) / 4.0);
        assertThat(staleness.getValues().get("in_queue_mean")).isEqualTo((2 + 2 + 1 + 1) / 4.0);
        assertThat(staleness.getValues().get("in_flight_mean")).isEqualTo((2 + 1 + 1 + 1) / 4.0);
        assertThat(verdict.stalenessMax()).isEqualTo(4);
    }

    @Test
    void shouldMaskSequencesThatAreTooOldInTime() {
        BatchVerdict verdict = decide(
                config(
                        RolloutCorrectionOptions.defaults(),
                        new StalenessConfig(8, 2500, 0),
                        SequenceMaskConfig.defaults(),
                        NO_M2PO),
                new float[8]);
        assertThat(verdict.tokens().mask()).containsExactly(1, 1, 1, 1, 0, 0, 0, 0);
        assertThat(verdict.maskedBy()).containsExactly(null, null, "age", "age");
        assertThat(report(verdict, "age").getValues()).containsEntry("oldest_ms", 4000.0);
        assertThat(report(verdict, "age").getSequencesChanged()).isEqualTo(2);
    }

    @Test
    void shouldReportVerlsMetricsAlsoWhereNothingIsRejected() {
        BatchVerdict verdict = decide(config(RolloutCorrectionOptions.defaults()), 0.5f, 0, 0, 0, 0, 0, 0, -0.5f);
        StageReport report = report(verdict, "rollout_correction");
        assertThat(report.getTokensChanged()).isZero();
        assertThat(report.getValues().get("rollout_corr/kl")).isCloseTo(0, within(1e-9));
        assertThat(report.getValues().get("rollout_corr/rollout_is_max")).isCloseTo(Math.exp(0.5), within(1e-6));
    }

    @Test
    void shouldRejectTokensByTheirOwnDivergence() {
        // k2 = (log ratio)^2 / 2: 0.5, 0.02, ...
        BatchVerdict verdict = decide(config(rejecting("token_k2", "0.1")), 1f, 0.2f, 0, 0, 0, 0, 0, -1f);
        assertThat(verdict.tokens().mask()).containsExactly(0, 1, 1, 1, 1, 1, 1, 0);
        assertThat(verdict.maskedBy()).containsOnlyNulls();
        assertThat(report(verdict, "rollout_correction").getTokensChanged()).isEqualTo(2);
    }

    @Test
    void shouldRejectWholeSequencesOfAPreset() {
        RolloutCorrectionOptions preset = new RolloutCorrectionOptions(
                "decoupled_k3_rs_token_tis", ComparedPolicies.ANCHOR, "token", "2.0", "", "");
        // k3 = e^x - 1 - x: of 0.3 it is 0.0499, above the preset's 0.01 on average over the two tokens
        BatchVerdict verdict = decide(config(preset), 0.3f, 0, 0, 0, 0, 0.01f, 0, 0);
        assertThat(verdict.tokens().mask()).containsExactly(0, 0, 1, 1, 1, 1, 1, 1);
        assertThat(verdict.maskedBy()).containsExactly("rollout_correction", null, null, null);
        assertThat(verdict.advantages())
                .as("a rejected sibling still is a baseline")
                .containsExactly(0.5, -0.5, 0.5, -0.5);
        assertThat(report(verdict, "ess").getSequencesSeen()).isEqualTo(3);
    }

    @Test
    void shouldMaskDriftedSequencesOfNegativeAdvantageOnly() {
        BatchVerdict verdict = decide(
                config(
                        RolloutCorrectionOptions.defaults(),
                        StalenessConfig.defaults(),
                        new SequenceMaskConfig(true, 0.1),
                        NO_M2PO),
                -1f,
                -1f,
                -1f,
                -1f,
                0,
                0,
                -0.1f,
                -0.05f);
        assertThat(verdict.tokens().mask()).containsExactly(1, 1, 0, 0, 1, 1, 1, 1);
        assertThat(verdict.maskedBy()).containsExactly(null, "sequence_mask", null, null);
        assertThat(report(verdict, "sequence_mask").getValues()).containsEntry("negative_sequences", 2.0);
    }

    @Test
    void shouldMaskTheLargestSquaresUntilTheirMeanIsBelowTheThreshold() {
        BatchVerdict verdict = decide(
                config(
                        RolloutCorrectionOptions.defaults(),
                        StalenessConfig.defaults(),
                        SequenceMaskConfig.defaults(),
                        new M2poMaskConfig(true, 0.04, false)),
                1f,
                0.1f,
                0,
                0,
                0,
                -0.5f,
                0,
                0);
        // squares 1, 0.01, 0.25 and five times 0: without the 1 the mean of seven is 0.0371
        assertThat(verdict.tokens().mask()).containsExactly(0, 1, 1, 1, 1, 1, 1, 1);
        assertThat(verdict.secondMoment()).isCloseTo(1.26 / 8, within(1e-6));
        assertThat(report(verdict, "m2po").getValues().get("second_moment_after"))
                .isCloseTo(0.26 / 7, within(1e-6));
    }

    @Test
    void shouldCountAllStagesAlsoWhereNothingIsLeftToTrainOn() {
        BatchVerdict verdict = decide(
                new CorrectionConfig(
                        rejecting("token_k2", "0.001"),
                        AdvantageConfig.defaults(),
                        StalenessConfig.defaults(),
                        new SequenceMaskConfig(true, 0.1),
                        M2poMaskConfig.defaults(),
                        EssConfig.defaults(),
                        MissingOldLogProbs.RECOMPUTE),
                1f,
                1f,
                1f,
                1f,
                1f,
                1f,
                1f,
                1f);
        assertThat(verdict.tokens().trainedTokens()).isZero();
        assertThat(verdict.maskedBy()).containsOnly("rollout_correction");
        assertThat(verdict.reports())
                .extracting(StageReport::getStage)
                .containsExactly("grpo", "staleness", "rollout_correction", "sequence_mask", "m2po", "ess");
        assertThat(verdict.stepScale()).isEqualTo(1);
    }
}
