package dev.millrace.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.conformance.ConformanceFamily.ConformanceCase;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.objective.Anchor;
import dev.millrace.corrections.objective.BypassMode;
import dev.millrace.corrections.objective.Cispo;
import dev.millrace.corrections.objective.ClipCov;
import dev.millrace.corrections.objective.DppoKl;
import dev.millrace.corrections.objective.DppoTv;
import dev.millrace.corrections.objective.Dro;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Gmpo;
import dev.millrace.corrections.objective.GspoToken;
import dev.millrace.corrections.objective.KlCov;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.ObjectiveInput;
import dev.millrace.corrections.objective.ObjectiveResult;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.objective.Reinforce;
import dev.millrace.corrections.objective.Sapo;
import dev.millrace.corrections.objective.UpdateFacts;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.RolloutCorrection;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionSettings;
import dev.millrace.corrections.rollout.Semantics;
import org.jspecify.annotations.Nullable;

/** verl's registered losses. */
final class PolicyLossFamily {
    private static final float GEOMETRIC_WEIGHT_FLOOR = 1e-10f;

    static ObjectNode compute(ConformanceCase golden) {
        PolicyLossOptions options = PolicyLossOptions.read(golden.config());
        CaseSequences sequences = golden.sequences();
        TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask());
        ObjectiveInput input = ObjectiveInput.of(batch, sequences.floats("logprobs"), sequences.floats("advantages"));
        if (options.lossMode().equals("bypass_mode")) {
            return output(options, bypass(options, golden.paddedLength(), input, sequences), sequences);
        }
        input = input.withProximal(sequences.floats("old_logprobs"));
        if (options.config.flag("with_rollout_is_weights", false)) {
            input = input.withWeights(weights(options, sequences));
        }
        LossAggregation aggregation = options.aggregation(golden.paddedLength());
        return output(options, evaluate(options, aggregation, input), sequences);
    }

    private static ObjectNode output(PolicyLossOptions options, ObjectiveResult result, CaseSequences sequences) {
        ObjectNode output = JsonNodeFactory.instance.objectNode();
        output.set("loss", JsonNumbers.write(result.loss()));
        output.set("grad_logprobs", sequences.ragged(result.gradient()));
        ObjectNode metrics = output.putObject("metrics");
        result.metrics().forEach((metric, value) -> {
            if (!options.lossMode().equals("gpg")) { // verl reports nothing about the plain policy gradient
                metrics.set(metric, JsonNumbers.write(value));
            }
        });
        return output;
    }

    /** {@code old_logprobs} are the behavior policy's; given weights are ignored. */
    private static ObjectiveResult bypass(
            PolicyLossOptions options, int paddedLength, ObjectiveInput input, CaseSequences sequences) {
        float[] behavior = sequences.floats("old_logprobs");
        RolloutCorrectionConfig config = options.rolloutCorrection();
        UpdateFacts facts = UpdateFacts.of(options.aggregation(paddedLength), options.whole);
        double dualClip = options.config.number("clip_ratio_c", PpoClip.DEFAULT_CLIP_RATIO_C);
        BypassMode loss = new BypassMode(
                config,
                new PpoClip(
                        Anchor.BEHAVIOR,
                        options.config.number("clip_ratio_low", options.config.number("clip_ratio", 0.2)),
                        options.config.number("clip_ratio_high", options.config.number("clip_ratio", 0.2)),
                        dualClip));
        ObjectiveInput bypassed = input.withBehavior(behavior);
        byte[] kept = new RolloutCorrection(config)
                .apply(input.batch(), LogRatio.full(sequences.floats("logprobs"), behavior))
                .mask();
        if (input.batch().withMask(kept).trainedTokens() > 0) {
            return loss.evaluate(bypassed, facts);
        }
        return loss.evaluate(bypassed, UpdateFacts.of(new LossAggregation.TokenSum()))
                .withLoss(options.lossOfNothing());
    }

    /** Over no token the reference has no gradient and a loss of 0 / 0; the library refuses. */
    private static ObjectiveResult evaluate(
            PolicyLossOptions options, LossAggregation aggregation, ObjectiveInput input) {
        Objective objective = objective(options);
        if (input.batch().trainedTokens() > 0) {
            return objective.evaluate(input, facts(options, aggregation, objective, input));
        }
        return objective
                .evaluate(input, UpdateFacts.of(new LossAggregation.TokenSum()))
                .withLoss(options.lossOfNothing());
    }

    /** GSPO, SAPO and GMPO ignore the requested mode; GMPO counts every sequence. */
    private static UpdateFacts facts(
            PolicyLossOptions options, LossAggregation aggregation, Objective objective, ObjectiveInput input) {
        if (options.lossMode().equals("geo_mean")) {
            GlobalBatch everySequence =
                    new GlobalBatch(GlobalBatch.OF_THIS_BATCH, input.batch().sequenceCount(), 1);
            return UpdateFacts.of(objective.publishedAggregation(), everySequence);
        }
        boolean asPublished =
                options.lossMode().equals("gspo") || options.lossMode().equals("sapo");
        return UpdateFacts.of(asPublished ? objective.publishedAggregation() : aggregation, options.whole);
    }

    /** The reference floors the weights whose geometric mean it takes. */
    private static float[] weights(PolicyLossOptions options, CaseSequences sequences) {
        float[] weights = sequences.floats("rollout_is_weights").clone();
        for (int t = 0; options.lossMode().equals("geo_mean") && t < weights.length; t++) {
            weights[t] += GEOMETRIC_WEIGHT_FLOOR;
        }
        return weights;
    }

    private static Objective objective(PolicyLossOptions options) {
        double low = options.config.number("clip_ratio_low", options.config.number("clip_ratio", 0.2));
        double high = options.config.number("clip_ratio_high", options.config.number("clip_ratio", 0.2));
        Anchor anchor = Anchor.PROXIMAL;
        return switch (options.lossMode()) {
            case "vanilla" ->
                new PpoClip(anchor, low, high, options.config.number("clip_ratio_c", PpoClip.DEFAULT_CLIP_RATIO_C));
            case "gpg" -> new Reinforce();
            case "dppo_tv" ->
                new DppoTv(anchor, low, high, options.config.number("clip_ratio_c", DppoTv.DEFAULT_TRUNCATION));
            case "dppo_kl" ->
                new DppoKl(anchor, low, high, options.config.number("clip_ratio_c", DppoTv.DEFAULT_TRUNCATION));
            case "gspo" -> new GspoToken(anchor, low, high);
            case "sapo" ->
                new Sapo(anchor, options.config.number("tau_pos", 1.0), options.config.number("tau_neg", 1.05));
            case "geo_mean" -> new Gmpo(anchor, low, high);
            case "cispo" -> new Cispo(anchor, low, high);
            case "dro" -> new Dro(anchor, options.droBeta());
            case "kl_cov" ->
                new KlCov(
                        anchor,
                        options.config.number("kl_cov_ratio", KlCov.DEFAULT_SHARE),
                        options.config.number("ppo_kl_coef", KlCov.DEFAULT_PENALTY));
            case "clip_cov" ->
                new ClipCov(
                        anchor,
                        low,
                        high,
                        options.config.number("clip_cov_ratio", ClipCov.DEFAULT_SHARE),
                        options.config.number("clip_cov_lb", ClipCov.DEFAULT_LOW),
                        options.config.number("clip_cov_ub", ClipCov.DEFAULT_HIGH));
            default -> throw new IllegalArgumentException("unknown loss_mode: " + options.lossMode());
        };
    }

    /** Options with verl's defaults; those of another loss mode are ignored. */
    static final class PolicyLossOptions {
        private final CaseConfig config;
        private final String aggregationMode;
        private final GlobalBatch whole;
        private final double lengthTokens;

        private PolicyLossOptions(CaseConfig config) {
            this.config = config;
            this.aggregationMode = config.text("loss_agg_mode", "token-mean");
            CaseConfig global =
                    config.has("global_batch_info") ? config.section("global_batch_info") : CaseConfig.empty();
            this.whole = new GlobalBatch(
                    global.integer("batch_num_tokens", (int) GlobalBatch.OF_THIS_BATCH),
                    global.integer("global_batch_size", (int) GlobalBatch.OF_THIS_BATCH),
                    global.integer("dp_size", 1));
            this.lengthTokens = global.number("loss_scale_factor", Double.NaN);
        }

        static PolicyLossOptions read(CaseConfig config) {
            config.ignore(
                    "clip_ratio",
                    "clip_ratio_low",
                    "clip_ratio_high",
                    "clip_ratio_c",
                    "with_rollout_is_weights",
                    "tau_pos",
                    "tau_neg",
                    "dro_beta",
                    "kl_cov_ratio",
                    "ppo_kl_coef",
                    "clip_cov_ratio",
                    "clip_cov_lb",
                    "clip_cov_ub",
                    "rollout_correction");
            return new PolicyLossOptions(config);
        }

        String lossMode() {
            return config.text("loss_mode", "vanilla");
        }

        RolloutCorrectionConfig rolloutCorrection() {
            if (!config.has("rollout_correction")) {
                throw new IllegalArgumentException("bypass_mode needs the options rollout_correction");
            }
            return CaseRolloutOptions.read(config.section("rollout_correction"), true);
        }

        LossAggregation aggregation(int paddedLength) {
            return switch (aggregationMode) {
                case "token-mean" -> new LossAggregation.TokenMean();
                case "token-sum" -> new LossAggregation.TokenSum();
                case "seq-mean-token-sum" -> new LossAggregation.SeqMeanTokenSum();
                case "seq-mean-token-sum-norm" ->
                    new LossAggregation.SeqMeanTokenSumNorm(Double.isNaN(lengthTokens) ? paddedLength : lengthTokens);
                case "seq-mean-token-mean" -> new LossAggregation.SeqMeanTokenMean();
                default -> throw new IllegalArgumentException("unknown loss_agg_mode: " + aggregationMode);
            };
        }

        /** Loss of the reference when no token is trained: 0 if the count of the whole is given, else NaN. */
        double lossOfNothing() {
            boolean sequences = switch (lossMode()) {
                case "gspo", "sapo" -> true;
                default -> aggregationMode.startsWith("seq-");
            };
            if (lossMode().equals("geo_mean") || !sequences && aggregationMode.equals("token-sum")) {
                return 0.0;
            }
            double count = sequences ? whole.sequences() : whole.tokens();
            if (count == GlobalBatch.OF_THIS_BATCH && whole.shards() > 1) {
                throw new IllegalArgumentException("the counts of the whole batch are required when dp_size > 1");
            }
            return count == GlobalBatch.OF_THIS_BATCH ? Double.NaN : 0.0;
        }

        /** Has no default. */
        double droBeta() {
            if (!config.has("dro_beta")) {
                throw new IllegalArgumentException("loss_mode dro needs dro_beta");
            }
            return config.number("dro_beta");
        }
    }

    /** verl's rollout correction options; thresholds are numbers or texts. */
    static final class CaseRolloutOptions {
        private static final String DEFAULT_IS_THRESHOLD = "2.0";

        private CaseRolloutOptions() {}

        static RolloutCorrectionConfig read(CaseConfig config, boolean bypass) {
            config.ignore("bypass_mode");
            config.ignore("rollout_is_threshold", "rollout_rs_threshold"); // nobody looks at them unless they are used
            String rolloutIs = config.has("rollout_is") ? config.text("rollout_is") : null;
            String rolloutRs = config.has("rollout_rs") ? config.text("rollout_rs") : null;
            return new RolloutCorrectionSettings(
                            rolloutIs,
                            rolloutIs == null ? null : isThreshold(config),
                            config.flag("rollout_is_batch_normalize", false),
                            rolloutRs,
                            rolloutRs == null ? null : threshold(config, "rollout_rs_threshold"),
                            bypass,
                            config.text("loss_type", "ppo_clip"))
                    .resolve(Semantics.VERL_REFERENCE);
        }

        private static @Nullable String isThreshold(CaseConfig config) {
            return config.mentions("rollout_is_threshold")
                    ? threshold(config, "rollout_is_threshold")
                    : DEFAULT_IS_THRESHOLD;
        }

        private static @Nullable String threshold(CaseConfig config, String name) {
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
}
