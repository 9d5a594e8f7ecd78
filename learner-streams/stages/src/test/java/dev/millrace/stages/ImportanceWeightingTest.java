package dev.millrace.stages;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.schemas.StageReport;
import java.util.List;
import org.junit.jupiter.api.Test;

class ImportanceWeightingTest {
    private static final TokenBatch ONE = new TokenBatch(new int[] {0, 3}, new byte[] {1, 0, 1});
    private static final MemberLogProbs LOG_PROBS = new MemberLogProbs(
            new float[] {-1f, -1f, -1f}, new float[] {-0.9f, -1f, -1f}, new float[] {-0.5f, 0f, -3f});

    private final float[] weights = new float[3];

    private List<StageReport> compute(ComparedPolicies compare, String rolloutIs, String threshold) {
        return new ImportanceWeighting(new RolloutCorrectionOptions("", compare, rolloutIs, threshold, "", ""))
                .compute(ONE, LOG_PROBS, weights);
    }

    @Test
    void shouldTruncateEachTokensWeight() {
        StageReport report = compute(ComparedPolicies.ANCHOR, "token", "1.5").get(0);
        assertThat(weights).containsExactly(new float[] {1.5f, 0f, (float) Math.exp(-2)}, within(1e-6f));
        assertThat(report.getStage()).isEqualTo("token_tis");
        assertThat(report.getTokensChanged()).isEqualTo(1);
    }

    @Test
    void shouldGiveTheTokensOfASequenceOneWeight() {
        compute(ComparedPolicies.ANCHOR, "sequence", "2.0");
        float weight = (float) Math.exp(0.5 - 2);
        assertThat(weights).containsExactly(new float[] {weight, 0f, weight}, within(1e-6f));
    }

    @Test
    void shouldCompareThePoliciesItIsToldTo() {
        compute(ComparedPolicies.ENGINE_MISMATCH, "token", "2.0");
        assertThat(weights).containsExactly(new float[] {(float) Math.exp(0.1), 0f, 1f}, within(1e-6f));
        compute(ComparedPolicies.STALENESS, "token", "2.0");
        assertThat(weights)
                .containsExactly(new float[] {(float) Math.exp(0.4), 0f, (float) Math.exp(-2)}, within(1e-6f));
    }

    @Test
    void shouldSetWeightsOutsideABandToZero() {
        StageReport report =
                compute(ComparedPolicies.ANCHOR, "token", "0.5_5.0").get(0);
        assertThat(weights).containsExactly(new float[] {(float) Math.exp(0.5), 0f, 0f}, within(1e-6f));
        assertThat(report.getStage()).isEqualTo("token_icepop");
        assertThat(report.getTokensSeen()).isEqualTo(2);
        assertThat(report.getTokensChanged()).isEqualTo(1);
    }

    @Test
    void shouldWeighEveryTrainedTokenOneWithoutARule() {
        assertThat(compute(ComparedPolicies.ANCHOR, "", "")).isEmpty();
        assertThat(weights).containsExactly(1f, 0f, 1f);
    }

    @Test
    void shouldReportAlsoOfASequenceWithoutTrainedTokens() {
        TokenBatch context = new TokenBatch(new int[] {0, 3}, new byte[3]);
        for (String threshold : List.of("2.0", "0.5_5.0")) {
            List<StageReport> reports = new ImportanceWeighting(
                            new RolloutCorrectionOptions("", ComparedPolicies.ANCHOR, "token", threshold, "", ""))
                    .compute(context, LOG_PROBS, weights);
            assertThat(reports)
                    .singleElement()
                    .satisfies(r -> assertThat(r.getTokensSeen()).isZero());
            assertThat(weights).containsOnly(0f);
        }
    }
}
