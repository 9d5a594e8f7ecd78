package dev.millrace.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.DoubleNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import dev.millrace.corrections.algorithm.Preset;
import dev.millrace.corrections.rollout.RolloutCorrectionSettings;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** {@code presets}: the parameters of one preset with their defaults, and the settings it comes to. */
final class PresetsFamily implements ConformanceFamily {
    static final String NAME = "presets";
    /** What stands for verl's constructor without arguments among the presets. */
    static final String DEFAULT_CONSTRUCTOR = "default_constructor";

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public ObjectNode compute(ConformanceCase golden) {
        String preset = golden.config().text("preset");
        if (preset.equals(DEFAULT_CONSTRUCTOR)) {
            return settings(RolloutCorrectionSettings.DEFAULTS);
        }
        Preset named = Preset.labelled(preset);
        ObjectNode output = JsonNodeFactory.instance.objectNode();
        ObjectNode parameters = output.putObject("parameters");
        for (Map.Entry<String, String> parameter : named.parameters().entrySet()) {
            parameters.set(parameter.getKey(), threshold(parameter.getValue()));
        }
        output.set("config", settings(named.settings()));
        return output;
    }

    private static ObjectNode settings(RolloutCorrectionSettings settings) {
        ObjectNode output = JsonNodeFactory.instance.objectNode();
        output.put("rollout_is", settings.rolloutIs());
        output.set("rollout_is_threshold", threshold(settings.rolloutIsThreshold()));
        output.put("rollout_is_batch_normalize", settings.rolloutIsBatchNormalize());
        output.put("rollout_rs", settings.rolloutRs());
        output.set("rollout_rs_threshold", threshold(settings.rolloutRsThreshold()));
        output.put("bypass_mode", settings.bypassMode());
        output.put("loss_type", settings.lossType());
        return output;
    }

    /** A single bound is a number in the reference's table, a lower and an upper one are a text. */
    private static JsonNode threshold(@Nullable String text) {
        if (text == null) {
            return NullNode.instance;
        }
        return text.contains("_") ? TextNode.valueOf(text) : DoubleNode.valueOf(Double.parseDouble(text));
    }
}
