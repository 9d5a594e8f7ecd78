package dev.millrace.conformance;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.objective.BypassMode;
import dev.millrace.corrections.objective.Cispo;
import dev.millrace.corrections.objective.ClipCov;
import dev.millrace.corrections.objective.ClipRange;
import dev.millrace.corrections.objective.DppoKl;
import dev.millrace.corrections.objective.DppoTv;
import dev.millrace.corrections.objective.Dro;
import dev.millrace.corrections.objective.Gmpo;
import dev.millrace.corrections.objective.GspoToken;
import dev.millrace.corrections.objective.KlCov;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.ObjectiveInput;
import dev.millrace.corrections.objective.ObjectiveResult;
import dev.millrace.corrections.objective.PolicyGradient;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.objective.Sapo;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.RolloutCorrection;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;

/** {@code policy_loss}: verl's registered losses, each one of Millrace's objectives. */
final class PolicyLossFamily implements ConformanceFamily {
    /** The golden cases have no more candidates than places, so the draw does not depend on it. */
    private static final long CLIP_COV_SEED = 0;

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
            input = input.withWeights(sequences.floats("rollout_is_weights"));
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
        LossAggregation aggregation = options.aggregation(paddedLength);
        double dualClip = options.clipRatioC(PpoClip.DEFAULT_DUAL_CLIP);
        ObjectiveInput bypassed = input.withBehavior(behavior);
        byte[] kept = new RolloutCorrection(config)
                .apply(input.batch(), LogRatio.full(sequences.floats("logprobs"), behavior))
                .mask();
        if (input.batch().withMask(kept).trainedTokens() > 0) {
            return new BypassMode(config, options.range(), dualClip, aggregation).evaluate(bypassed);
        }
        ObjectiveResult empty =
                new BypassMode(config, options.range(), dualClip, new LossAggregation.TokenSum()).evaluate(bypassed);
        return new ObjectiveResult(options.lossOfNothing(), empty.gradient(), empty.clipFlags(), empty.metrics());
    }

    /** A mean over nothing, which the library refuses, is what the reference makes of it: no gradient, and 0 / 0. */
    private static ObjectiveResult evaluate(
            PolicyLossOptions options, LossAggregation aggregation, ObjectiveInput input) {
        if (input.batch().trainedTokens() > 0) {
            LossAggregation sequenceMean = new LossAggregation.SequenceMeanTokenMean(options.whole());
            return objective(options, aggregation, sequenceMean).evaluate(input);
        }
        LossAggregation sum = new LossAggregation.TokenSum();
        ObjectiveResult empty = objective(options, sum, sum).evaluate(input);
        return new ObjectiveResult(options.lossOfNothing(), empty.gradient(), empty.clipFlags(), empty.metrics());
    }

    /** @param sequenceMean what GSPO and SAPO aggregate by, whatever mode is asked for */
    private static Objective objective(
            PolicyLossOptions options, LossAggregation aggregation, LossAggregation sequenceMean) {
        ClipRange range = options.range();
        return switch (options.lossMode()) {
            case "vanilla" -> new PpoClip(range, options.clipRatioC(PpoClip.DEFAULT_DUAL_CLIP), aggregation);
            case "gpg" -> new PolicyGradient(aggregation);
            case "dppo_tv" ->
                new DppoTv(range.low(), range.high(), options.clipRatioC(DppoTv.DEFAULT_TRUNCATION), aggregation);
            case "dppo_kl" ->
                new DppoKl(range.low(), range.high(), options.clipRatioC(DppoTv.DEFAULT_TRUNCATION), aggregation);
            case "gspo" -> new GspoToken(range, sequenceMean);
            case "sapo" -> new Sapo(options.tauPositive(), options.tauNegative(), sequenceMean);
            case "geo_mean" -> Gmpo.asReference(range);
            case "cispo" -> new Cispo(range, aggregation);
            case "dro" -> new Dro(options.droBeta(), aggregation);
            case "kl_cov" -> new KlCov(options.klCovShare(), options.klCovPenalty(), aggregation);
            case "clip_cov" ->
                new ClipCov(
                        range,
                        options.clipCovShare(),
                        options.clipCovLow(),
                        options.clipCovHigh(),
                        CLIP_COV_SEED,
                        aggregation);
            default -> throw new IllegalArgumentException("unknown loss_mode: " + options.lossMode());
        };
    }
}
