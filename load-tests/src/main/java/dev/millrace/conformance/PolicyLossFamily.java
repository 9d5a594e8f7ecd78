package dev.millrace.conformance;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
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

/** {@code policy_loss}: verl's registered losses, each one of Millrace's objectives. */
final class PolicyLossFamily implements ConformanceFamily {
    /** verl's, under the logarithm. */
    private static final float GEOMETRIC_WEIGHT_FLOOR = 1e-10f;

    @Override
    public String name() {
        return "policy_loss";
    }

    @Override
    public ObjectNode compute(ConformanceCase golden) {
        PolicyLossOptions options = PolicyLossOptions.read(golden.config());
        CaseSequences sequences = golden.sequences();
        TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask());
        ObjectiveInput input = ObjectiveInput.of(batch, sequences.floats("logprobs"), sequences.floats("advantages"));
        if (options.isBypass()) {
            return output(options, bypass(options, golden.paddedLength(), input, sequences), sequences);
        }
        input = input.withProximal(sequences.floats("old_logprobs"));
        if (options.weighted()) {
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

    /** Here {@code old_logprobs} are the behavior policy's, and weights that are given are not looked at. */
    private static ObjectiveResult bypass(
            PolicyLossOptions options, int paddedLength, ObjectiveInput input, CaseSequences sequences) {
        float[] behavior = sequences.floats("old_logprobs");
        RolloutCorrectionConfig config = options.rolloutCorrection();
        UpdateFacts facts = UpdateFacts.of(options.aggregation(paddedLength), options.whole());
        double dualClip = options.clipRatioC(PpoClip.DEFAULT_CLIP_RATIO_C);
        BypassMode loss = new BypassMode(
                config, new PpoClip(Anchor.BEHAVIOR, options.clipRatioLow(), options.clipRatioHigh(), dualClip));
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

    /** A mean over nothing, which the library refuses, is what the reference makes of it: no gradient, and 0 / 0. */
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

    /** GSPO, SAPO and GMPO aggregate as published whatever mode is asked for, and GMPO counts every sequence. */
    private static UpdateFacts facts(
            PolicyLossOptions options, LossAggregation aggregation, Objective objective, ObjectiveInput input) {
        if (options.lossMode().equals("geo_mean")) {
            GlobalBatch everySequence =
                    new GlobalBatch(GlobalBatch.OF_THIS_BATCH, input.batch().sequenceCount(), 1);
            return UpdateFacts.of(objective.publishedAggregation(), everySequence);
        }
        boolean asPublished =
                options.lossMode().equals("gspo") || options.lossMode().equals("sapo");
        return UpdateFacts.of(asPublished ? objective.publishedAggregation() : aggregation, options.whole());
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
        double low = options.clipRatioLow();
        double high = options.clipRatioHigh();
        Anchor anchor = Anchor.PROXIMAL;
        return switch (options.lossMode()) {
            case "vanilla" -> new PpoClip(anchor, low, high, options.clipRatioC(PpoClip.DEFAULT_CLIP_RATIO_C));
            case "gpg" -> new Reinforce();
            case "dppo_tv" -> new DppoTv(anchor, low, high, options.clipRatioC(DppoTv.DEFAULT_TRUNCATION));
            case "dppo_kl" -> new DppoKl(anchor, low, high, options.clipRatioC(DppoTv.DEFAULT_TRUNCATION));
            case "gspo" -> new GspoToken(anchor, low, high);
            case "sapo" -> new Sapo(anchor, options.tauPositive(), options.tauNegative());
            case "geo_mean" -> new Gmpo(anchor, low, high);
            case "cispo" -> new Cispo(anchor, low, high);
            case "dro" -> new Dro(anchor, options.droBeta());
            case "kl_cov" -> new KlCov(anchor, options.klCovShare(), options.klCovPenalty());
            case "clip_cov" ->
                new ClipCov(anchor, low, high, options.clipCovShare(), options.clipCovLow(), options.clipCovHigh());
            default -> throw new IllegalArgumentException("unknown loss_mode: " + options.lossMode());
        };
    }
}
