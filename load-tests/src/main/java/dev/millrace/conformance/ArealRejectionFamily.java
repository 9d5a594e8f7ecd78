package dev.millrace.conformance;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.filter.DivergenceFilter;
import dev.millrace.corrections.filter.DivergenceFilter.Action;
import dev.millrace.corrections.filter.DivergenceFilter.Metric;
import dev.millrace.corrections.filter.FilterSummary;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.RejectionAggregation;
import java.util.OptionalDouble;

/** {@code areal_rejection}: AReaL's rejection sampling, with the defaults of its configuration. */
final class ArealRejectionFamily implements ConformanceFamily {
    private static final double DEFAULT_UPPER = 5.0;

    @Override
    public String name() {
        return "areal_rejection";
    }

    @Override
    public ObjectNode compute(ConformanceCase golden) {
        DivergenceFilter filter = filter(golden.config());
        CaseSequences sequences = golden.sequences();
        TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask());
        LogRatio ratio = LogRatio.anchor(sequences.floats("old_logprobs"), sequences.floats("rollout_logprobs"));
        byte[] mask = new byte[batch.tokenCount()];
        float[] weights = new float[batch.tokenCount()];
        FilterSummary summary = filter.compute(batch, ratio, mask, weights);
        ObjectNode output = JsonNodeFactory.instance.objectNode();
        output.set("loss_mask", sequences.ragged(mask));
        output.set("behave_imp_weight", sequences.ragged(weights));
        output.putObject("metrics").put("filtered_fraction", summary.changedFraction());
        return output;
    }

    /** The filter of a rejection configuration; AReaL's losses have one too. */
    static DivergenceFilter filter(CaseConfig config) {
        Metric metric = switch (config.text("metric", "ratio")) {
            case "ratio" -> Metric.RATIO;
            case "kl_k1" -> Metric.K1;
            case "kl_k2" -> Metric.K2;
            case "kl_k3" -> Metric.K3;
            default -> throw unknown("metric", config, "ratio, kl_k1, kl_k2, kl_k3");
        };
        RejectionAggregation aggregation = switch (config.text("agg", "mean")) {
            case "sum" -> RejectionAggregation.SUM;
            case "mean" -> RejectionAggregation.MEAN;
            case "max" -> RejectionAggregation.MAX;
            default -> throw unknown("agg", config, "sum, mean, max");
        };
        RejectionAggregation level = switch (config.text("level", "token")) {
            case "token" -> RejectionAggregation.TOKEN; // the reference checks the aggregation here and does not use it
            case "sequence" -> aggregation;
            default -> throw unknown("level", config, "token, sequence");
        };
        Action action = switch (config.text("action", "mask")) {
            case "mask" -> Action.MASK;
            case "clamp" -> Action.TRUNCATE;
            default -> throw unknown("action", config, "mask, clamp");
        };
        OptionalDouble lower = config.has("lower") ? OptionalDouble.of(config.number("lower")) : OptionalDouble.empty();
        return new DivergenceFilter(metric, level, action, lower, config.number("upper", DEFAULT_UPPER));
    }

    private static IllegalArgumentException unknown(String option, CaseConfig config, String known) {
        return new IllegalArgumentException(option + " must be one of " + known + ": " + config.text(option));
    }
}
