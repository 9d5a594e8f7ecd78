package dev.millrace.cli.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.RolloutCorrection;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionResult;
import dev.millrace.corrections.rollout.RolloutCorrectionSettings;
import dev.millrace.corrections.rollout.Semantics;

/** {@code rollout_correction}: weights, rejection mask and metrics together, with verl's accounting. */
final class RolloutCorrectionFamily implements ConformanceFamily {
    @Override
    public String name() {
        return "rollout_correction";
    }

    @Override
    public ObjectNode compute(ConformanceCase golden) {
        RolloutCorrectionConfig config = config(golden.config());
        CaseSequences sequences = golden.sequences();
        TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask());
        RolloutCorrectionResult result = new RolloutCorrection(config).apply(batch,
            LogRatio.anchor(sequences.floats("old_logprobs"), sequences.floats("rollout_logprobs")));
        ObjectNode output = JsonNodeFactory.instance.objectNode();
        output.set("is_weights", result.weights().<JsonNode>map(sequences::ragged).orElse(NullNode.instance));
        output.set("mask", sequences.ragged(result.mask()));
        ObjectNode metrics = output.putObject("metrics");
        result.metrics().forEach((metric, value) -> metrics.set(metric, JsonNumbers.write(value)));
        return output;
    }

    /** The rollout correction of a configuration; verl's bypass loss has one too. */
    static RolloutCorrectionConfig config(CaseConfig config) {
        return new RolloutCorrectionSettings(config.text("rollout_is", null), threshold(config, "rollout_is_threshold"),
            config.flag("rollout_is_batch_normalize", false), config.text("rollout_rs", null),
            threshold(config, "rollout_rs_threshold"), config.flag("bypass_mode", false),
            config.text("loss_type", "ppo_clip")).resolve(Semantics.VERL_REFERENCE);
    }

    /** A threshold is a number or a text; verl takes neither truth values nor lists. */
    private static String threshold(CaseConfig config, String name) {
        JsonNode value = config.raw(name);
        if (value.isMissingNode()) {
            return null;
        }
        if (!value.isNumber() && !value.isTextual()) {
            throw new IllegalArgumentException(name + " must be a number or a text: " + value);
        }
        return value.asText();
    }
}
