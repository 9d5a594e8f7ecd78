package dev.millrace.conformance;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
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
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** {@code advantage}: verl's registered advantage estimators. */
final class AdvantageFamily implements ConformanceFamily {
    @Override
    public String name() {
        return "advantage";
    }

    @Override
    public ObjectNode compute(ConformanceCase golden) {
        CaseConfig config = golden.config();
        CaseSequences sequences = golden.sequences();
        TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask(), sequences.groups());
        String estimator = config.text("adv_estimator");
        AdvantagesAndReturns result = switch (estimator) {
            case "gae" ->
                new Gae(config.number("gamma"), config.number("lam"), Credit.TOKEN)
                        .computeAsReference(batch, sequences.floats("token_level_rewards"), sequences.floats("values"));
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
                withoutBaselineOfNothing(
                        batch, spread(batch, new Opo().perSequence(batch, summed(sequences, "token_level_rewards"))));
            case "gdpo" -> spread(batch, gdpo(config, sequences, batch));
            default ->
                spread(batch, outcome(estimator, config).perSequence(batch, summed(sequences, "token_level_rewards")));
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
                batch, components, config.has("gdpo_reward_weights") ? config.numbers("gdpo_reward_weights") : weights);
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

    /** verl divides by a group's trained tokens; where there are none, 0 / 0 reaches even the masked positions. */
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

    /** verl's outcome reward: the sum over all tokens of a sequence, context included. */
    private static double[] summed(CaseSequences sequences, String field) {
        double[] tokens = sequences.doubles(field);
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
