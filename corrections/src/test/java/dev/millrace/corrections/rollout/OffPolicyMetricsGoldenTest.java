package dev.millrace.corrections.rollout;

import dev.millrace.corrections.diagnostics.DiagnosticBounds;
import dev.millrace.corrections.diagnostics.OffPolicyDiagnostics;
import dev.millrace.corrections.diagnostics.PolicyGap;
import dev.millrace.corrections.golden.GoldenAssertions;
import dev.millrace.corrections.golden.GoldenCase;
import dev.millrace.corrections.golden.GoldenCases;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class OffPolicyMetricsGoldenTest {
    static List<GoldenCase> cases() {
        return GoldenCases.of("offpolicy_metrics");
    }

    @ParameterizedTest
    @MethodSource("cases")
    void shouldMatchTheReference(GoldenCase golden) {
        OffPolicyMetrics metrics = new OffPolicyMetrics(Semantics.VERL_REFERENCE);
        float[] old = golden.tokens("old_logprobs");
        if (!golden.config().path("rollout_logprobs_available").asBoolean()) {
            GoldenAssertions.assertMatches(golden, Map.of("metrics", metrics.ofTargetAlone(golden.batch(), old)));
            return;
        }
        LogRatio ratio = LogRatio.anchor(old, golden.tokens("rollout_logprobs"));
        PolicyGap gap = new OffPolicyDiagnostics(DiagnosticBounds.DEFAULT)
                .compute(golden.batch(), ratio)
                .all();
        PolicyGap.ProbabilityAgreement agreement = gap.probabilities();
        Map<String, Object> debug = new HashMap<>();
        debug.put("training/rollout_probs_diff_valid", 1);
        debug.put("training/rollout_probs_diff_max", agreement.maxDifference());
        debug.put("training/rollout_probs_diff_mean", agreement.meanDifference());
        debug.put("training/rollout_probs_diff_std", gap.tokens() == 1 ? Double.NaN : agreement.differenceDeviation());
        debug.put(
                "training/rollout_actor_probs_pearson_corr", agreement.pearson().orElse(Double.NaN));
        GoldenAssertions.assertMatches(
                golden, Map.of("metrics", metrics.compute(golden.batch(), ratio), "debug_metrics", debug));
    }
}
