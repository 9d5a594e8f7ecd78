package dev.millrace.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.RolloutCorrection;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionResult;

/** {@code rollout_correction}: weights, rejection mask and metrics together, with verl's accounting. */
final class RolloutCorrectionFamily implements ConformanceFamily {
    @Override
    public String name() {
        return "rollout_correction";
    }

    @Override
    public ObjectNode compute(ConformanceCase golden) {
        RolloutCorrectionConfig config =
                CaseRolloutOptions.read(golden.config(), golden.config().flag("bypass_mode", false));
        CaseSequences sequences = golden.sequences();
        TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask());
        RolloutCorrectionResult result = new RolloutCorrection(config)
                .apply(batch, LogRatio.anchor(sequences.floats("old_logprobs"), sequences.floats("rollout_logprobs")));
        ObjectNode output = JsonNodeFactory.instance.objectNode();
        output.set(
                "is_weights", result.weights().<JsonNode>map(sequences::ragged).orElse(NullNode.instance));
        output.set("mask", sequences.ragged(result.mask()));
        ObjectNode metrics = output.putObject("metrics");
        result.metrics().forEach((metric, value) -> metrics.set(metric, JsonNumbers.write(value)));
        return output;
    }
}
