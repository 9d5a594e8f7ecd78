package dev.millrace.conformance;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.conformance.ConformanceFamily.ConformanceCase;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.vcpo.Ess.Rule;
import dev.millrace.corrections.vcpo.WeightedAverage;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/** VCPO's sequence weights, ESS, learning rates and OPOB coefficients; weights overflow as float32. */
final class VcpoFamily {
    private static final double EPSILON = 1e-8;

    static ObjectNode compute(ConformanceCase golden) {
        CaseConfig config = golden.config();
        CaseSequences sequences = golden.sequences();
        TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask());
        VcpoSequenceWeights weights = VcpoSequenceWeights.of(
                batch, sequences.doubles("rollout_logprobs"), sequences.doubles("old_logprobs"), threshold(config));
        ObjectNode output = JsonNodeFactory.instance.objectNode();
        output.set("kl_rollout_old", list(weights.k3()));
        output.set("rollout_is_geom_mean", list(weights.geometricMean()));
        output.set("rollout_seq_is", list(weights.raw()));
        output.set("rollout_seq_is_clipped", weights.hasClipped() ? list(weights.clipped()) : output.nullNode());
        ReferenceEffectiveSampleSize raw = ReferenceEffectiveSampleSize.of(weights.raw());
        ReferenceEffectiveSampleSize clipped = ReferenceEffectiveSampleSize.of(weights.clippedOrRaw());
        ObjectNode ess = output.putObject("ess");
        ess.set("ess", JsonNumbers.write(raw.ess()));
        ess.set("ess_ratio", JsonNumbers.write(raw.ratio()));
        ess.set("ess_clipped", JsonNumbers.write(clipped.ess()));
        ess.set("ess_ratio_clipped", JsonNumbers.write(clipped.ratio()));
        output.set("scaled_lrs", list(scaledRates(config, raw.ratio(), clipped.ratio())));
        baseline(config.section("grad_baselining"), sequences, batch, weights, output);
        return output;
    }

    private static double threshold(CaseConfig config) {
        return config.has("rollout_is_threshold") ? config.number("rollout_is_threshold") : 0.0; // 0 clips nothing
    }

    private static double[] scaledRates(CaseConfig config, double rawRatio, double clippedRatio) {
        CaseConfig scaling = config.section("ess_scaling");
        boolean enabled = scaling.flag("enable");
        double base = scaling.number("base_ess_ratio");
        double ratio = scaling.flag("use_clipped") ? clippedRatio : rawRatio;
        String rule = scaling.text("scaling_rule");
        double[] rates = config.numbers("base_lrs");
        if (!enabled) {
            return rates;
        }
        double scale = switch (rule) {
            case "sqrt" -> ReferenceEffectiveSampleSize.stepScale(Rule.SQRT, base, ratio);
            case "linear" -> ReferenceEffectiveSampleSize.stepScale(Rule.LINEAR, base, ratio);
            default -> throw new IllegalArgumentException("scaling_rule must be sqrt or linear: " + rule);
        };
        return Arrays.stream(rates).map(rate -> rate * scale).toArray();
    }

    private static void baseline(
            CaseConfig config,
            CaseSequences sequences,
            TokenBatch batch,
            VcpoSequenceWeights weights,
            ObjectNode output) {
        boolean grouped = switch (config.text("scope")) {
            case "group" -> true;
            case "minibatch" -> false;
            default -> throw new IllegalArgumentException("scope must be group or minibatch: " + config.text("scope"));
        };
        boolean normByDeviation = config.flag("norm_by_std");
        double[] importance = importance(config, weights, batch.sequenceCount());
        ReferenceOptimalBaseline optimal =
                new ReferenceOptimalBaseline(average(config.text("agg_mode")), config.flag("normalize_by_length"));
        String[] ids = sequences.texts("group_id");
        requireEqualGroups(ids);
        double[] rewards = sequences.perSequence("reward");
        double[] advantages = sequences.perSequence("advantage_scalar");
        double[] norms = sequences.perSequence("grad_norm_unscaled");
        double[] mean = new double[ids.length];
        double[] deviation = new double[ids.length];
        double[] coefficient = new double[ids.length];
        ObjectNode baselines = output.putObject("opob_baseline");
        for (String id : new LinkedHashSet<>(Arrays.asList(ids))) {
            int[] members = IntStream.range(0, ids.length)
                    .filter(s -> ids[s].equals(id))
                    .toArray();
            populationMoments(rewards, members, mean, deviation);
            if (grouped) {
                double b = of(optimal, members, rewards, norms, importance, batch);
                baselines.set(id, JsonNumbers.write(b));
                for (int s : members) {
                    double scale = normByDeviation && deviation[s] > EPSILON ? deviation[s] : 1.0;
                    coefficient[s] = rewards[s] / scale - b * (1.0 / scale);
                }
            }
        }
        if (!grouped) {
            int[] all = IntStream.range(0, ids.length).toArray();
            double b = of(optimal, all, advantages, norms, importance, batch);
            baselines.set("minibatch", JsonNumbers.write(b));
            Arrays.setAll(coefficient, s -> advantages[s] - b);
        }
        output.set("reward_std", list(deviation));
        output.set(
                "grpo_adv",
                list(IntStream.range(0, ids.length)
                        .mapToDouble(s -> (rewards[s] - mean[s]) / (deviation[s] + EPSILON))
                        .toArray()));
        output.set("gradient_coefficient", list(coefficient));
    }

    private static double[] importance(CaseConfig config, VcpoSequenceWeights weights, int sequences) {
        boolean clipped = config.flag("use_clipped_is_ratios");
        if (!config.flag("use_is_weights")) {
            double[] ones = new double[sequences];
            Arrays.fill(ones, 1.0);
            return ones;
        }
        if (clipped && !weights.hasClipped()) {
            throw new IllegalArgumentException(
                    "use_clipped_is_ratios needs a positive rollout_is_threshold: there are no clipped ratios");
        }
        return clipped ? weights.clipped() : weights.raw();
    }

    private static WeightedAverage average(String mode) {
        return switch (mode) {
            case "mean" -> WeightedAverage.MEAN;
            case "median" -> WeightedAverage.MEDIAN;
            case "winsorized_mean" -> WeightedAverage.WINSORIZED_MEAN;
            default -> throw new IllegalArgumentException("agg_mode must be mean, median or winsorized_mean: " + mode);
        };
    }

    private static double of(
            ReferenceOptimalBaseline optimal,
            int[] members,
            double[] values,
            double[] norms,
            double[] importance,
            TokenBatch batch) {
        return optimal.of(
                pick(values, members),
                pick(norms, members),
                pick(importance, members),
                Arrays.stream(members).map(batch::trainedTokens).toArray());
    }

    private static double[] pick(double[] values, int[] members) {
        return Arrays.stream(members).mapToDouble(s -> values[s]).toArray();
    }

    /** Mean and population deviation in float32, as the reference: rounding shows where rewards nearly agree. */
    private static void populationMoments(double[] rewards, int[] members, double[] mean, double[] deviation) {
        float sum = 0f;
        for (int s : members) {
            sum += (float) rewards[s];
        }
        float average = sum / members.length;
        double variance = Arrays.stream(members)
                .mapToDouble(s -> rewards[s] - average)
                .map(d -> d * d)
                .average()
                .orElse(0.0);
        for (int s : members) {
            mean[s] = average;
            deviation[s] = (float) Math.sqrt(variance);
        }
    }

    private static void requireEqualGroups(String[] ids) {
        Map<String, Integer> sizes = new LinkedHashMap<>();
        for (String id : ids) {
            sizes.merge(id, 1, Integer::sum);
        }
        Set<Integer> distinct = new LinkedHashSet<>(sizes.values());
        if (distinct.size() > 1) {
            throw new IllegalArgumentException("groups must have the same number of sequences: " + sizes);
        }
    }

    private static ArrayNode list(double[] values) {
        ArrayNode list = JsonNodeFactory.instance.arrayNode();
        for (double value : values) {
            list.add(JsonNumbers.write(value));
        }
        return list;
    }

    /**
     * Statistics of VCPO's {@code compute_is_info} in the range of float32.
     *
     * @param k3 mean k3 of rollout against old
     * @param geometricMean {@code exp(mean log ratio)}
     * @param raw {@code exp(sum log ratio)}
     * @param clipped {@code min(raw, threshold)}; empty without a positive threshold
     */
    record VcpoSequenceWeights(double[] k3, double[] geometricMean, double[] raw, double[] clipped) {
        private static final double EPSILON = 1e-8;

        static VcpoSequenceWeights of(TokenBatch batch, double[] rollout, double[] old, double threshold) {
            int sequences = batch.sequenceCount();
            double[] k3 = new double[sequences];
            double[] geometricMean = new double[sequences];
            double[] raw = new double[sequences];
            for (int s = 0; s < sequences; s++) {
                double sum = 0.0;
                double sumOfK3 = 0.0;
                for (int t = batch.start(s); t < batch.end(s); t++) {
                    if (batch.isTrained(t)) {
                        double logRatio = old[t] - rollout[t];
                        sum += logRatio;
                        sumOfK3 += Math.exp(logRatio) - logRatio - 1.0;
                    }
                }
                double count = batch.trainedTokens(s) + EPSILON;
                k3[s] = asFloat(sumOfK3 / count);
                geometricMean[s] = asFloat(Math.exp(sum / count));
                raw[s] = asFloat(Math.exp(sum));
            }
            double[] clipped = threshold > 0.0
                    ? Arrays.stream(raw)
                            .map(weight -> Math.min(weight, threshold))
                            .toArray()
                    : new double[0];
            return new VcpoSequenceWeights(k3, geometricMean, raw, clipped);
        }

        boolean hasClipped() {
            return clipped.length > 0;
        }

        double[] clippedOrRaw() {
            return hasClipped() ? clipped : raw;
        }

        private static double asFloat(double value) {
            return Float.isInfinite((float) value) ? value * Double.POSITIVE_INFINITY : value;
        }
    }
}
