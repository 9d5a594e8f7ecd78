package dev.millrace.conformance;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.filter.FilterSummary;
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

/**
 * {@code areal_decoupled_loss}: AReaL's PPO and SAPO losses: a filter between behavior and proximal policy, then the
 * trust region between proximal and current, divided by the tokens of before the filter.
 */
final class ArealDecoupledLossFamily implements ConformanceFamily {
    @Override
    public String name() {
        return "areal_decoupled_loss";
    }

    @Override
    public ObjectNode compute(ConformanceCase golden) {
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

    private static ObjectNode ppo(CaseConfig config, CaseSequences sequences, TokenBatch batch, boolean bySequence) {
        float[] proximal = sequences.floats("old_logprobs");
        ObjectiveInput input = ObjectiveInput.of(batch, sequences.floats("logprobs"), sequences.floats("advantages"))
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
                        bySequence ? sequenceRatios(input.batch(), ratio) : tokenRatios(input.batch(), ratio, true)));
        output.set("clip_mask", sequences.ragged(flags(result, ObjectiveResult.CLIPPED)));
        output.set("dual_clip_mask", sequences.ragged(flags(result, ObjectiveResult.LOWER_CLIPPED)));
        output.setAll(filtered);
        return output;
    }

    private static ObjectNode sapo(CaseConfig config, CaseSequences sequences, TokenBatch batch, boolean bySequence) {
        double positive = config.number("tau_pos");
        double negative = config.number("tau_neg");
        float[] behavior = sequences.floats("rollout_logprobs");
        ObjectiveInput input = ObjectiveInput.of(batch, sequences.floats("logprobs"), sequences.floats("advantages"))
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

    /** Divides by the tokens of before any filter, by 1 if there are none. */
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

    /** @param maskedOnly whether context tokens have 0; AReaL's SAPO reports their ratio too */
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
