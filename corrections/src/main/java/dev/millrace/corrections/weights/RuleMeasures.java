package dev.millrace.corrections.weights;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.TokenBlock;
import dev.millrace.corrections.rollout.RolloutCorrection;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.Semantics;
import dev.millrace.corrections.rollout.WeightRule;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.ObjIntConsumer;

/** The bounds of verl's weights, and its metrics of them: those named {@code rollout_is}. */
final class RuleMeasures {
    private RuleMeasures() {}

    static Map<String, Double> of(WeightRule rule, boolean batchNormalize, TokenBatch batch, LogRatio ratio) {
        return of(rule, batchNormalize, batch, ratio, (block, sequence) -> {});
    }

    /** @param first takes each block of the ratios and its sequence */
    static Map<String, Double> of(
            WeightRule rule,
            boolean batchNormalize,
            TokenBatch batch,
            LogRatio ratio,
            ObjIntConsumer<TokenBlock> first) {
        Map<String, Double> values = new TreeMap<>(new RolloutCorrection(new RolloutCorrectionConfig(
                        Optional.of(rule),
                        batchNormalize,
                        List.of(),
                        RolloutCorrectionConfig.ObjectiveMode.DECOUPLED,
                        Semantics.MILLRACE))
                .apply(batch, ratio, first)
                .metrics());
        values.keySet().removeIf(name -> !name.contains("/rollout_is_"));
        values.put("upper", rule.upper());
        if (rule instanceof WeightRule.Band) {
            values.put("lower", rule.lower());
        }
        return values;
    }
}
