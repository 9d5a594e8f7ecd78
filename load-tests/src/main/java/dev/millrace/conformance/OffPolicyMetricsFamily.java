package dev.millrace.conformance;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.diagnostics.DiagnosticBounds;
import dev.millrace.corrections.diagnostics.OffPolicyDiagnostics;
import dev.millrace.corrections.diagnostics.PolicyGap;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.OffPolicyMetrics;
import dev.millrace.corrections.rollout.Semantics;
import java.util.Map;

/** {@code offpolicy_metrics}: divergences and perplexities, and the agreement of the sampled tokens' probabilities. */
final class OffPolicyMetricsFamily implements ConformanceFamily {
    @Override
    public String name() {
        return "offpolicy_metrics";
    }

    @Override
    public ObjectNode compute(ConformanceCase golden) {
        CaseSequences sequences = golden.sequences();
        TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask());
        float[] old = sequences.floats("old_logprobs");
        OffPolicyMetrics metrics = new OffPolicyMetrics(Semantics.VERL_REFERENCE);
        ObjectNode output = JsonNodeFactory.instance.objectNode();
        if (!golden.config().flag("rollout_logprobs_available", true)) {
            put(output.putObject("metrics"), metrics.ofTargetAlone(batch, old));
            return output;
        }
        LogRatio ratio = LogRatio.anchor(old, sequences.floats("rollout_logprobs"));
        put(output.putObject("metrics"), metrics.compute(batch, ratio));
        PolicyGap gap = new OffPolicyDiagnostics(DiagnosticBounds.DEFAULT)
                .compute(batch, ratio)
                .all();
        debug(output.putObject("debug_metrics"), gap);
        return output;
    }

    private static void debug(ObjectNode output, PolicyGap gap) {
        PolicyGap.ProbabilityAgreement agreement = gap.probabilities();
        output.put("training/rollout_probs_diff_valid", 1);
        output.set("training/rollout_probs_diff_max", JsonNumbers.write(agreement.maxDifference()));
        output.set("training/rollout_probs_diff_mean", JsonNumbers.write(agreement.meanDifference()));
        // of one token the reference divides by n - 1 = 0
        output.set(
                "training/rollout_probs_diff_std",
                JsonNumbers.write(gap.tokens() == 1 ? Double.NaN : agreement.differenceDeviation()));
        output.set(
                "training/rollout_actor_probs_pearson_corr",
                JsonNumbers.write(agreement.pearson().orElse(Double.NaN)));
    }

    private static void put(ObjectNode output, Map<String, Double> metrics) {
        metrics.forEach((metric, value) -> output.set(metric, JsonNumbers.write(value)));
    }
}
