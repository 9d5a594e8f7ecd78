package dev.millrace.runtime.config;

import dev.millrace.api.environment.RewardFunction;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.generator.environment.OwnVerdict;
import dev.millrace.generator.staleness.SamplingConfig;
import dev.millrace.scorer.ScorerConfig;
import dev.millrace.topology.join.JoinConfig;

/**
 * Whether what the algorithm's stages read is made, and what is scored for them is read: a stage without its input would have
 * every rollout refused, and what nobody reads is work for nothing. What only the record has, such as the reference's
 * log-probs, credit and the generator's own likeliest tokens, may be recorded for later.
 */
final class InputSources {
    private final Algorithm algorithm;

    private InputSources(Algorithm algorithm) {
        this.algorithm = algorithm;
    }

    /** @throws ConfigException naming the stage and the key that do not go together */
    static void require(
            Algorithm algorithm, RewardFunction reward, SamplingConfig sampling, ScorerConfig scorer, JoinConfig join) {
        InputSources sources = new InputSources(algorithm);
        boolean credit = join.reward() || !(reward instanceof OwnVerdict own) || own.credit();
        sources.requireMade(StageInput.TURN_REWARDS, credit, "reward.credit is false", "set it to true");
        sources.requireMade(StageInput.TOKEN_REWARDS, credit, "reward.credit is false", "set it to true");
        sources.requireMade(
                StageInput.DISTRIBUTIONS,
                sampling.topLogProbs() > 0,
                "admission.sampling.top_log_probs is 0",
                "set it to how many tokens are compared");
        sources.requireBoth(StageInput.DISTRIBUTIONS, scorer.topLogProbs(), "scorer.top_log_probs", "true");
        sources.requireBoth(StageInput.ENTROPIES, scorer.entropies(), "scorer.entropies", "true");
        sources.requireBoth(
                StageInput.SQUARED_PROBABILITIES, scorer.sumSquaredProbs(), "scorer.sum_squared_probs", "true");
        sources.requireBoth(
                StageInput.TEACHER, join.teacher(), "topology.join.teacher", "true, and scorer.teacher to a policy");
        sources.requireMade(
                StageInput.REFERENCE,
                join.reference(),
                "topology.join.reference is false",
                "set it to true, and scorer.reference to a policy");
        for (StageInput partners : new StageInput[] {StageInput.VALUES, StageInput.GREEDY_REWARDS}) {
            sources.requireMade(
                    partners,
                    join.reward(),
                    "topology.join.reward is false",
                    "set it to true and have a partner's reward records bring them in their credit");
        }
        sources.requireMade(
                StageInput.FORCED_TOKENS,
                false,
                "no part of a run makes them",
                "decide with it over vectors in a file (correct)");
    }

    private boolean reads(StageInput input) {
        return algorithm.inputs().contains(input);
    }

    private void requireBoth(StageInput input, boolean made, String key, String value) {
        if (made && !reads(input)) {
            throw new ConfigException(unread(input, key));
        }
        requireMade(input, made, key + " is false", "set it to " + value);
    }

    private static String unread(StageInput input, String key) {
        return key + " is true, and no stage of the algorithm reads " + input.text()
                + ", so they would be made and never used; leave it out, or choose a stage that reads them";
    }

    private void requireMade(StageInput input, boolean made, String why, String wayOut) {
        if (!made && reads(input)) {
            String stage = algorithm.stages().stream()
                    .filter(one -> one.inputs().contains(input))
                    .map(Stage::name)
                    .findFirst()
                    .orElseThrow();
            throw new ConfigException("algorithm: stage " + stage + " reads " + input.text() + ", and " + why + "; "
                    + wayOut + ", or leave the stage out");
        }
    }
}
