package dev.millrace.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.DoubleNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import dev.millrace.conformance.ConformanceFamily.ConformanceCase;
import dev.millrace.conformance.PolicyLossFamily.CaseRolloutOptions;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.advantage.AdvantagesAndReturns;
import dev.millrace.corrections.advantage.Credit;
import dev.millrace.corrections.advantage.Gae;
import dev.millrace.corrections.advantage.Gdpo;
import dev.millrace.corrections.advantage.Gpg;
import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.advantage.GrpoPassk;
import dev.millrace.corrections.advantage.LoneSequence;
import dev.millrace.corrections.advantage.Opo;
import dev.millrace.corrections.advantage.OptimalTokenBaseline;
import dev.millrace.corrections.advantage.OutcomeAdvantage;
import dev.millrace.corrections.advantage.ReinforcePlusPlus;
import dev.millrace.corrections.advantage.ReinforcePlusPlusBaseline;
import dev.millrace.corrections.advantage.Remax;
import dev.millrace.corrections.advantage.Rloo;
import dev.millrace.corrections.advantage.TirOptimalTokenBaseline;
import dev.millrace.corrections.algorithm.Preset;
import dev.millrace.corrections.diagnostics.OffPolicyDiagnostics;
import dev.millrace.corrections.diagnostics.PolicyGap;
import dev.millrace.corrections.filter.DivergenceFilter;
import dev.millrace.corrections.filter.DivergenceFilter.Action;
import dev.millrace.corrections.filter.DivergenceFilter.Metric;
import dev.millrace.corrections.filter.FilterSummary;
import dev.millrace.corrections.kl.CoefficientConfig;
import dev.millrace.corrections.kl.InRewardPenalty;
import dev.millrace.corrections.kl.KlEstimator;
import dev.millrace.corrections.m2po.SecondMoment;
import dev.millrace.corrections.m2po.SecondMomentMask;
import dev.millrace.corrections.objective.Anchor;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Gspo;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.ObjectiveInput;
import dev.millrace.corrections.objective.ObjectiveResult;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.objective.Sapo;
import dev.millrace.corrections.objective.SequenceSapo;
import dev.millrace.corrections.objective.UpdateFacts;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.ProximalApproximation;
import dev.millrace.corrections.rollout.RejectionAggregation;
import dev.millrace.corrections.rollout.RolloutCorrection;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionResult;
import dev.millrace.corrections.rollout.RolloutCorrectionSettings;
import dev.millrace.corrections.rollout.Semantics;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

public final class ConformanceFamilies {
    private final Map<String, ConformanceFamily> byName;

    public ConformanceFamilies(Map<String, ConformanceFamily> byName) {
        this.byName = byName;
    }

    public static ConformanceFamilies all() {
        return new ConformanceFamilies(new TreeMap<>(Map.ofEntries(
                Map.entry("advantage", AdvantageFamily::compute),
                Map.entry("areal_decoupled_loss", ArealDecoupledLossFamily::compute),
                Map.entry("areal_prox_approx", ArealProxApproxFamily::compute),
                Map.entry("areal_rejection", ArealRejectionFamily::compute),
                Map.entry("kl_controller", KlControllerFamily::compute),
                Map.entry("kl", KlFamily::compute),
                Map.entry("m2po", M2poFamily::compute),
                Map.entry("offpolicy_metrics", OffPolicyMetricsFamily::compute),
                Map.entry("policy_loss", PolicyLossFamily::compute),
                Map.entry(PresetsFamily.NAME, PresetsFamily::compute),
                Map.entry("rollout_correction", RolloutCorrectionFamily::compute),
                Map.entry("staleness_capacity", StalenessCapacityFamily::compute),
                Map.entry("vcpo", VcpoFamily::compute))));
    }

    public CaseResult run(JsonNode golden) {
        String name = golden.path("name").asText("");
        String family = golden.path("family").asText("");
        try {
            ConformanceFamily answering = byName.get(family);
            if (answering == null) {
                throw new MalformedCaseException(
                        "unknown family '" + family + "'; known: " + String.join(", ", names()));
            }
            CaseConfig config = new CaseConfig("", golden.path("config"));
            ObjectNode output = answering.compute(new ConformanceCase(name, family, config, golden.path("input")));
            config.requireAllRead();
            return new CaseResult.Computed(name, family, output);
        } catch (IllegalArgumentException refusal) {
            return new CaseResult.Refused(name, family, String.valueOf(refusal.getMessage()));
        } catch (RuntimeException failure) { // reported as this case's result, so that the other cases still run
            String message = failure instanceof MalformedCaseException
                    ? String.valueOf(failure.getMessage())
                    : failure.toString();
            return new CaseResult.Failed(name, family, message);
        }
    }

    public Set<String> names() {
        return byName.keySet();
    }

    /** {@code advantage}: verl's registered advantage estimators. */
    static final class AdvantageFamily {
        static ObjectNode compute(ConformanceCase golden) {
            CaseConfig config = golden.config();
            CaseSequences sequences = golden.sequences();
            TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask(), sequences.groups());
            String estimator = config.text("adv_estimator");
            AdvantagesAndReturns result = switch (estimator) {
                case "gae" ->
                    new Gae(config.number("gamma"), config.number("lam"), Credit.TOKEN)
                            .computeAsReference(
                                    batch, sequences.floats("token_level_rewards"), sequences.floats("values"));
                case "reinforce_plus_plus" ->
                    new ReinforcePlusPlus(config.number("gamma"), Credit.TOKEN)
                            .compute(batch, sequences.floats("token_level_rewards"));
                case "remax" ->
                    Remax.defaults()
                            .computeAsReference(
                                    batch,
                                    sequences.floats("token_level_rewards"),
                                    sequences.perSequence("reward_baseline"));
                case "optimal_token_baseline" ->
                    new OptimalTokenBaseline(config.flag("handle_zero_tail", true), 0, Credit.TOKEN)
                            .computeAsReference(
                                    batch,
                                    sequences.floats("token_level_rewards"),
                                    sequences.floats("old_logprobs"),
                                    sequences.floats("sum_pi_squared"),
                                    weights(config, sequences));
                case "tir_optimal_token_baseline" ->
                    new TirOptimalTokenBaseline(config.flag("handle_zero_tail", true), 0, Credit.TOKEN)
                            .compute(
                                    batch,
                                    sequences.floats("token_level_rewards"),
                                    sequences.floats("old_logprobs"),
                                    sequences.floats("sum_pi_squared"),
                                    weights(config, sequences));
                case "opo" ->
                    withoutBaselineOfNothing(batch, spread(batch, new Opo().perSequence(batch, summed(sequences))));
                case "gdpo" -> spread(batch, gdpo(config, sequences, batch));
                default -> spread(batch, outcome(estimator, config).perSequence(batch, summed(sequences)));
            };
            ObjectNode output = JsonNodeFactory.instance.objectNode();
            output.set("advantages", sequences.ragged(result.advantages()));
            output.set("returns", sequences.ragged(result.returns()));
            return output;
        }

        private static OutcomeAdvantage outcome(String estimator, CaseConfig config) {
            return switch (estimator) {
                case "grpo", "grpo_vectorized" ->
                    config.flag("norm_adv_by_std_in_grpo", true) ? new Grpo(true) : new Grpo(false);
                case "grpo_passk" ->
                    config.flag("norm_adv_by_std_in_grpo", true) ? new GrpoPassk(true) : new GrpoPassk(false);
                case "rloo" -> new Rloo(LoneSequence.KEEPS_ITS_REWARD);
                case "rloo_vectorized" -> new Rloo(LoneSequence.TEACHES_NOTHING);
                case "gpg" -> new Gpg(1.0);
                case "reinforce_plus_plus_baseline" -> new ReinforcePlusPlusBaseline();
                default -> throw new IllegalArgumentException("unknown adv_estimator: " + estimator);
            };
        }

        private static double[] gdpo(CaseConfig config, CaseSequences sequences, TokenBatch batch) {
            List<String> keys = config.texts("gdpo_reward_keys");
            double[][] components = new double[keys.size()][];
            for (int k = 0; k < components.length; k++) {
                components[k] = sequences.perSequence("reward_components", keys.get(k));
            }
            double[] weights = new double[components.length];
            Arrays.fill(weights, 1.0);
            return Gdpo.perSequence(
                    batch,
                    components,
                    config.has("gdpo_reward_weights") ? config.numbers("gdpo_reward_weights") : weights);
        }

        private static float @Nullable [] weights(CaseConfig config, CaseSequences sequences) {
            return config.flag("with_rollout_is_weights", false) ? sequences.floats("rollout_is_weights") : null;
        }

        private static AdvantagesAndReturns spread(TokenBatch batch, double[] perSequence) {
            float[] advantages = new float[batch.tokenCount()];
            for (int s = 0; s < batch.sequenceCount(); s++) {
                for (int t = batch.start(s); t < batch.end(s); t++) {
                    advantages[t] = batch.isTrained(t) ? (float) perSequence[s] : 0f;
                }
            }
            return new AdvantagesAndReturns(advantages, advantages);
        }

        /** verl divides by a group's trained tokens; without any, 0 / 0 reaches the masked positions too. */
        private static AdvantagesAndReturns withoutBaselineOfNothing(TokenBatch batch, AdvantagesAndReturns result) {
            int[] sizes = new int[batch.groupCount()];
            int[] trained = new int[batch.groupCount()];
            for (int s = 0; s < batch.sequenceCount(); s++) {
                sizes[batch.group(s)]++;
                trained[batch.group(s)] += batch.trainedTokens(s);
            }
            for (int s = 0; s < batch.sequenceCount(); s++) {
                if (sizes[batch.group(s)] > 1 && trained[batch.group(s)] == 0) {
                    Arrays.fill(result.advantages(), batch.start(s), batch.end(s), Float.NaN);
                }
            }
            return result;
        }

        private static double[] summed(CaseSequences sequences) {
            double[] tokens = sequences.doubles("token_level_rewards");
            int[] offsets = sequences.offsets();
            double[] sums = new double[sequences.count()];
            for (int s = 0; s < sums.length; s++) {
                for (int t = offsets[s]; t < offsets[s + 1]; t++) {
                    sums[s] += tokens[t];
                }
            }
            return sums;
        }
    }

    /** AReaL's PPO and SAPO losses; both divide by the token count before the filter. */
    static final class ArealDecoupledLossFamily {
        static ObjectNode compute(ConformanceCase golden) {
            CaseConfig config = golden.config();
            config.ignore("eps_clip", "eps_clip_higher", "c_clip", "tau_pos", "tau_neg", "rejection_sampling");
            CaseSequences sequences = golden.sequences();
            TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask());
            boolean bySequence = switch (config.text("importance_sampling_level", "token")) {
                case "token" -> false;
                case "sequence" -> true;
                default ->
                    throw new IllegalArgumentException("importance_sampling_level must be token or sequence: "
                            + config.text("importance_sampling_level"));
            };
            return switch (config.text("loss", "ppo")) {
                case "ppo" -> ppo(config, sequences, batch, bySequence);
                case "sapo" -> sapo(config, sequences, batch, bySequence);
                default -> throw new IllegalArgumentException("loss must be ppo or sapo: " + config.text("loss"));
            };
        }

        private static ObjectNode ppo(
                CaseConfig config, CaseSequences sequences, TokenBatch batch, boolean bySequence) {
            float[] proximal = sequences.floats("old_logprobs");
            ObjectiveInput input = ObjectiveInput.of(
                            batch, sequences.floats("logprobs"), sequences.floats("advantages"))
                    .withProximal(proximal);
            double low = config.number("eps_clip");
            double high = config.number("eps_clip_higher", low);
            double dualClip = config.number("c_clip", Double.POSITIVE_INFINITY);
            Objective objective = bySequence
                    ? new Gspo(Anchor.PROXIMAL, low, high, dualClip)
                    : new PpoClip(Anchor.PROXIMAL, low, high, dualClip);
            ObjectNode filtered = JsonNodeFactory.instance.objectNode();
            if (config.has("rejection_sampling")) {
                float[] behavior = sequences.floats("rollout_logprobs");
                byte[] mask = new byte[batch.tokenCount()];
                float[] weights = new float[mask.length];
                FilterSummary summary = ArealRejectionFamily.filter(config.section("rejection_sampling"))
                        .compute(batch, LogRatio.anchor(proximal, behavior), mask, weights);
                input = input.withMask(mask).withWeights(weights);
                describe(filtered, sequences, input.batch(), weights, LogRatio.anchor(proximal, behavior));
                filtered.putObject("metrics").put("filtered_fraction", summary.changedFraction());
            }
            ObjectiveResult result = objective.evaluate(input, tokenMean(batch));
            ObjectNode output = output(result, sequences);
            LogRatio ratio = LogRatio.trustRegion(sequences.floats("logprobs"), proximal);
            output.set(
                    "importance_weight",
                    sequences.ragged(
                            bySequence
                                    ? sequenceRatios(input.batch(), ratio)
                                    : tokenRatios(input.batch(), ratio, true)));
            output.set("clip_mask", sequences.ragged(flags(result, ObjectiveResult.CLIPPED)));
            output.set("dual_clip_mask", sequences.ragged(flags(result, ObjectiveResult.LOWER_CLIPPED)));
            output.setAll(filtered);
            return output;
        }

        private static ObjectNode sapo(
                CaseConfig config, CaseSequences sequences, TokenBatch batch, boolean bySequence) {
            double positive = config.number("tau_pos");
            double negative = config.number("tau_neg");
            float[] behavior = sequences.floats("rollout_logprobs");
            ObjectiveInput input = ObjectiveInput.of(
                            batch, sequences.floats("logprobs"), sequences.floats("advantages"))
                    .withProximal(behavior);
            Objective objective = bySequence
                    ? new SequenceSapo(Anchor.BEHAVIOR, positive, negative)
                    : new Sapo(Anchor.BEHAVIOR, positive, negative);
            ObjectNode output = output(objective.evaluate(input, tokenMean(batch)), sequences);
            LogRatio ratio = LogRatio.full(sequences.floats("logprobs"), behavior);
            output.set(
                    "importance_weight",
                    sequences.ragged(bySequence ? sequenceRatios(batch, ratio) : tokenRatios(batch, ratio, false)));
            return output;
        }

        /** Divides by the token count before any filter, at least 1. */
        private static UpdateFacts tokenMean(TokenBatch batch) {
            return UpdateFacts.of(
                    new LossAggregation.TokenMean(),
                    new GlobalBatch(Math.max(1, batch.trainedTokens()), GlobalBatch.OF_THIS_BATCH, 1));
        }

        private static ObjectNode output(ObjectiveResult result, CaseSequences sequences) {
            ObjectNode output = JsonNodeFactory.instance.objectNode();
            output.set("loss", JsonNumbers.write(result.loss()));
            output.set("grad_logprobs", sequences.ragged(result.gradient()));
            return output;
        }

        private static void describe(
                ObjectNode output, CaseSequences sequences, TokenBatch kept, float[] weights, LogRatio anchor) {
            byte[] mask = new byte[weights.length];
            double[] logRatios = new double[weights.length];
            for (int t = 0; t < weights.length; t++) {
                if (kept.isTrained(t) && weights[t] > 0) {
                    mask[t] = 1;
                    logRatios[t] = anchor.at(t);
                }
            }
            output.set("behave_imp_weight", sequences.ragged(weights));
            output.set("behave_mask", sequences.ragged(mask));
            output.set("behave_approx_kl", sequences.ragged(logRatios));
        }

        /** @param maskedOnly zero for context tokens; AReaL's SAPO reports their ratio too */
        private static float[] tokenRatios(TokenBatch batch, LogRatio ratio, boolean maskedOnly) {
            float[] ratios = new float[batch.tokenCount()];
            for (int t = 0; t < ratios.length; t++) {
                ratios[t] = batch.isTrained(t) || !maskedOnly ? (float) Math.exp(ratio.at(t)) : 0f;
            }
            return ratios;
        }

        private static float[] sequenceRatios(TokenBatch batch, LogRatio ratio) {
            float[] ratios = new float[batch.tokenCount()];
            for (int s = 0; s < batch.sequenceCount(); s++) {
                double sum = 0.0;
                for (int t = batch.start(s); t < batch.end(s); t++) {
                    sum += batch.isTrained(t) ? ratio.at(t) : 0.0;
                }
                for (int t = batch.start(s); t < batch.end(s); t++) {
                    ratios[t] = batch.isTrained(t) ? (float) Math.exp(sum / batch.trainedTokens(s)) : 0f;
                }
            }
            return ratios;
        }

        private static byte[] flags(ObjectiveResult result, byte flag) {
            byte[] flags = new byte[result.clipFlags().length];
            for (int t = 0; t < flags.length; t++) {
                flags[t] = (byte) ((result.clipFlags()[t] & flag) != 0 ? 1 : 0);
            }
            return flags;
        }
    }

    /** AReaL's approximations at every token, masked or not, with the reference's epsilon in the linear one. */
    static final class ArealProxApproxFamily {
        static ObjectNode compute(ConformanceCase golden) {
            int currentVersion = golden.config().integer("current_version");
            CaseSequences sequences = golden.sequences();
            float[] behavior = sequences.floats("old_logprobs");
            float[] current = sequences.floats("logprobs");
            int[] versions = sequences.integers("versions");
            double[] linear = new double[versions.length];
            for (int t = 0; t < versions.length; t++) {
                if (versions[t] > currentVersion) { // the reference leaves such a token at its behavior log-prob
                    versions[t] = ProximalApproximation.NOT_SAMPLED;
                }
                double share = ProximalApproximation.currentShare(versions[t], currentVersion);
                linear[t] = ProximalApproximation.referenceLinear(behavior[t], current[t], share);
            }
            TokenBatch unmasked = new TokenBatch(sequences.offsets(), new byte[versions.length]);
            float[] loglinear = new float[versions.length];
            float[] rollout = new float[versions.length];
            ProximalApproximation.LOGLINEAR.compute(unmasked, behavior, current, versions, currentVersion, loglinear);
            ProximalApproximation.BEHAVIOR.compute(unmasked, behavior, current, versions, currentVersion, rollout);
            ObjectNode output = JsonNodeFactory.instance.objectNode();
            output.set("loglinear", sequences.ragged(loglinear));
            output.set("linear", sequences.ragged(linear));
            output.set("rollout", sequences.ragged(rollout));
            return output;
        }
    }

    /** verl's estimators with gradients, and its penalty in the reward. */
    static final class KlFamily {
        static ObjectNode compute(ConformanceCase golden) {
            String op = golden.config().text("op");
            return switch (op) {
                case "kl_penalty" -> elementwise(golden);
                case "apply_kl_penalty" -> inReward(golden);
                default -> throw new IllegalArgumentException("op must be kl_penalty or apply_kl_penalty: " + op);
            };
        }

        private static ObjectNode elementwise(ConformanceCase golden) {
            KlEstimator estimator = KlEstimator.named(golden.config().text("kl_penalty"));
            CaseSequences sequences = golden.sequences();
            double[] current = sequences.doubles("logprobs");
            double[] reference = sequences.doubles("ref_logprobs");
            double[] values = new double[current.length];
            double[] gradient = new double[current.length];
            for (int t = 0; t < values.length; t++) {
                values[t] = estimator.value(current[t] - reference[t]);
                gradient[t] = estimator.derivative(current[t] - reference[t]);
            }
            ObjectNode output = JsonNodeFactory.instance.objectNode();
            output.set("kl", sequences.ragged(values));
            output.set("grad_logprobs", sequences.ragged(gradient));
            return output;
        }

        private static ObjectNode inReward(ConformanceCase golden) {
            CoefficientConfig controller =
                    KlControllerFamily.controller(golden.config().section("kl_ctrl"));
            InRewardPenalty penalty = InRewardPenalty.asReference(
                    KlEstimator.named(golden.config().text("kl_penalty", "kl")));
            CaseSequences sequences = golden.sequences();
            TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask());
            float[] current = sequences.floats("old_logprobs");
            float[] reference = sequences.floats("ref_logprobs");
            double[] rewards = penalty.penalise(
                    batch, sequences.doubles("token_level_scores"), current, current, reference, controller.initial());
            double measured = penalty.measure(batch, current, current, reference);
            ObjectNode output = JsonNodeFactory.instance.objectNode();
            output.set("token_level_rewards", sequences.ragged(rewards));
            ObjectNode metrics = output.putObject("metrics");
            metrics.set("actor/reward_kl_penalty", JsonNumbers.write(measured));
            metrics.set("actor/reward_kl_penalty_coeff", JsonNumbers.write(controller.initial()));
            output.set(
                    "kl_coef_after",
                    JsonNumbers.write(
                            KlControllerFamily.updated(controller, controller.initial(), measured, sequences.count())));
            return output;
        }
    }

    static final class M2poFamily {
        static ObjectNode compute(ConformanceCase golden) {
            CaseSequences sequences = golden.sequences();
            TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask());
            LogRatio ratio = LogRatio.anchor(sequences.floats("old_logprobs"), sequences.floats("rollout_logprobs"));
            byte[] mask = new byte[batch.tokenCount()];
            SecondMoment moment =
                    new SecondMomentMask(golden.config().number("m2_threshold")).compute(batch, ratio, mask);
            ObjectNode output = JsonNodeFactory.instance.objectNode();
            output.set("mask", sequences.ragged(mask));
            output.put("num_masked", moment.masked());
            return output;
        }
    }

    static final class OffPolicyMetricsFamily {
        static ObjectNode compute(ConformanceCase golden) {
            CaseSequences sequences = golden.sequences();
            TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask());
            float[] old = sequences.floats("old_logprobs");
            ObjectNode output = JsonNodeFactory.instance.objectNode();
            if (!golden.config().flag("rollout_logprobs_available", true)) {
                Map<String, Double> known = metrics(batch, LogRatio.engineMismatch(old, old));
                known.keySet().removeIf(name -> !name.startsWith("training_"));
                put(output.putObject("metrics"), known);
                return output;
            }
            LogRatio ratio = LogRatio.anchor(old, sequences.floats("rollout_logprobs"));
            put(output.putObject("metrics"), metrics(batch, ratio));
            PolicyGap gap = OffPolicyDiagnostics.compute(batch, ratio).all();
            debug(output.putObject("debug_metrics"), gap);
            return output;
        }

        /** Those of a correction without weights and rejections. */
        private static Map<String, Double> metrics(TokenBatch batch, LogRatio ratio) {
            Map<String, Double> metrics = new LinkedHashMap<>();
            new RolloutCorrection(Preset.DISABLED.settings().resolve(Semantics.VERL_REFERENCE))
                    .apply(batch, ratio)
                    .metrics()
                    .forEach((name, value) -> metrics.put(name.replace("rollout_corr/", ""), value));
            return metrics;
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

    static final class RolloutCorrectionFamily {
        static ObjectNode compute(ConformanceCase golden) {
            RolloutCorrectionConfig config =
                    CaseRolloutOptions.read(golden.config(), golden.config().flag("bypass_mode", false));
            CaseSequences sequences = golden.sequences();
            TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask());
            RolloutCorrectionResult result = new RolloutCorrection(config)
                    .apply(
                            batch,
                            LogRatio.anchor(sequences.floats("old_logprobs"), sequences.floats("rollout_logprobs")));
            ObjectNode output = JsonNodeFactory.instance.objectNode();
            output.set(
                    "is_weights",
                    result.weights().<JsonNode>map(sequences::ragged).orElse(NullNode.instance));
            output.set("mask", sequences.ragged(result.mask()));
            ObjectNode metrics = output.putObject("metrics");
            result.metrics().forEach((metric, value) -> metrics.set(metric, JsonNumbers.write(value)));
            return output;
        }
    }

    /**
     * AReaL's admission formula after each event of a script, with its silent floors (arXiv 2505.24298, {@code
     * StalenessManager.get_capacity}, commit 4aef98d).
     */
    static final class StalenessCapacityFamily {
        static ObjectNode compute(ConformanceCase golden) {
            Script script = new Script(
                    golden.config().integer("max_concurrent_rollouts"),
                    golden.config().integer("consumer_batch_size"),
                    golden.config().integer("max_staleness"));
            ObjectNode output = JsonNodeFactory.instance.objectNode();
            output.put("initial_capacity", script.capacity());
            output.put("pending_limit", script.pendingLimit());
            ArrayNode capacity = output.putArray("capacity");
            ArrayNode stats = output.putArray("stats");
            JsonNode events = golden.input().path("events");
            if (!events.isArray()) {
                throw new MalformedCaseException("input.events must be a list: " + events);
            }
            for (JsonNode event : events) {
                script.apply(event);
                capacity.add(script.capacity());
                stats.addArray()
                        .add(script.enqueued)
                        .add(script.running)
                        .add(script.accepted)
                        .add(script.rejected);
            }
            return output;
        }

        private static final class Script {
            private final int maxConcurrent;
            private final int batchSize;
            private final int maxStaleness;
            private long version;
            private long enqueued;
            private long running;
            private long accepted;
            private long rejected;

            Script(int maxConcurrent, int batchSize, int maxStaleness) {
                this.maxConcurrent = maxConcurrent;
                this.batchSize = batchSize;
                this.maxStaleness = maxStaleness;
            }

            void apply(JsonNode event) {
                switch (event.path("op").asText()) {
                    case "enqueue" -> enqueued++;
                    case "submit" -> {
                        enqueued--;
                        running++;
                    }
                    case "accept" -> {
                        running--;
                        accepted++;
                    }
                    case "reject" -> {
                        running--;
                        rejected++;
                    }
                    case "set_version" -> version = versionOf(event);
                    case "recover" -> {
                        version = versionOf(event);
                        accepted = version * Math.max(1, batchSize);
                    }
                    default -> throw new MalformedCaseException("unknown event: " + event);
                }
            }

            private static long versionOf(JsonNode event) {
                if (!event.path("version").isIntegralNumber()) {
                    throw new MalformedCaseException("the event needs a version: " + event);
                }
                return event.path("version").longValue();
            }

            /** {@code min(maxConcurrent - running, (maxStaleness + version + 1) * batchSize - (accepted + running))}. */
            long capacity() {
                long byStaleness = ((long) maxStaleness + version + 1) * Math.max(1, batchSize) - (accepted + running);
                return Math.min(Math.max(1, maxConcurrent) - running, byStaleness);
            }

            /** Here the reference does not raise the batch size. */
            long pendingLimit() {
                return ((long) maxStaleness + 1) * batchSize;
            }
        }
    }

    private static final class ArealRejectionFamily {
        private static final double DEFAULT_UPPER = 5.0;

        static ObjectNode compute(ConformanceCase golden) {
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
                case "token" ->
                    RejectionAggregation.TOKEN; // the reference checks the aggregation here and does not use it
                case "sequence" -> aggregation;
                default -> throw unknown("level", config, "token, sequence");
            };
            Action action = switch (config.text("action", "mask")) {
                case "mask" -> Action.MASK;
                case "clamp" -> Action.TRUNCATE;
                default -> throw unknown("action", config, "mask, clamp");
            };
            OptionalDouble lower =
                    config.has("lower") ? OptionalDouble.of(config.number("lower")) : OptionalDouble.empty();
            return new DivergenceFilter(metric, level, action, lower, config.number("upper", DEFAULT_UPPER));
        }

        private static IllegalArgumentException unknown(String option, CaseConfig config, String known) {
            return new IllegalArgumentException(option + " must be one of " + known + ": " + config.text(option));
        }
    }

    private static final class KlControllerFamily {
        static ObjectNode compute(ConformanceCase golden) {
            CoefficientConfig controller = controller(golden.config());
            JsonNode updates = golden.input().path("updates");
            if (!updates.isArray()) {
                throw new MalformedCaseException("input.updates must be a list");
            }
            ObjectNode output = JsonNodeFactory.instance.objectNode();
            ArrayNode values = output.putArray("values");
            double coefficient = controller.initial();
            values.add(JsonNumbers.write(coefficient));
            for (JsonNode update : updates) {
                double measured = JsonNumbers.read(update.path("current_kl"), "current_kl");
                coefficient = updated(
                        controller,
                        coefficient,
                        measured,
                        update.path("n_steps").longValue());
                values.add(JsonNumbers.write(coefficient));
            }
            return output;
        }

        static CoefficientConfig controller(CaseConfig config) {
            config.ignore("target_kl", "horizon");
            String type = config.text("type");
            return switch (type) {
                case "fixed" -> new CoefficientConfig.Fixed(config.number("kl_coef"));
                case "adaptive" ->
                    new CoefficientConfig.Adaptive(
                            config.number("kl_coef"), config.number("target_kl"), config.number("horizon"));
                default -> throw new IllegalArgumentException("controller type must be fixed or adaptive: " + type);
            };
        }

        /** The reference accepts any factor; the library rejects one that is not positive. */
        static double updated(CoefficientConfig controller, double coefficient, double measuredKl, long steps) {
            return controller instanceof CoefficientConfig.Adaptive adaptive
                    ? coefficient * adaptive.multiplier(measuredKl, steps)
                    : coefficient;
        }
    }

    static final class PresetsFamily {
        static final String NAME = "presets";
        /** Stands for verl's constructor without arguments. */
        static final String DEFAULT_CONSTRUCTOR = "default_constructor";

        static ObjectNode compute(ConformanceCase golden) {
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

        /** verl's table has a single bound as number, a pair as text. */
        private static JsonNode threshold(@Nullable String text) {
            if (text == null) {
                return NullNode.instance;
            }
            return text.contains("_") ? TextNode.valueOf(text) : DoubleNode.valueOf(Double.parseDouble(text));
        }
    }
}
