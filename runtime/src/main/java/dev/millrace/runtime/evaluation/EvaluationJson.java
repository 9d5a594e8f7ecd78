package dev.millrace.runtime.evaluation;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.schemas.BetaFit;
import dev.millrace.schemas.VersionEvaluation;

/** An evaluation as JSON, under the names of its record; the names are a contract. */
public final class EvaluationJson {
    private static final ObjectMapper JSON = new ObjectMapper();

    private EvaluationJson() {}

    /** The part that a curve needs. */
    public static ObjectNode row(VersionEvaluation of) {
        return JSON.createObjectNode()
                .put("version", of.getVersion())
                .put("reward", of.getRewardMean())
                .put("reward_low", of.getRewardLow())
                .put("reward_high", of.getRewardHigh())
                .put("pass_at_1", EvaluationRecords.passAt(of, 1).getUnbiased())
                .put("truncated_share", of.getTruncatedShare())
                .put("prompts", of.getPrompts().size())
                .put("responses", EvaluationRecords.responses(of))
                .put("tokens", EvaluationRecords.tokens(of))
                .put("start_log_prob", of.getStartLogProb());
    }

    /** Everything except the prompts' counts. */
    public static ObjectNode whole(VersionEvaluation of) {
        ObjectNode json = row(of).put("epoch", of.getEpoch())
                .put("weights_sha256", of.getWeightsSha256())
                .put("data_sha256", of.getDataSha256())
                .put("samples_per_prompt", of.getSamplesPerPrompt())
                .put("temperature", of.getSampling().getTemperature())
                .put("top_p", of.getSampling().getTopP())
                .put("correct_above", of.getCorrectAbove())
                .put("failed", of.getFailed())
                .put("passed_over", of.getPassedOver())
                .put("finished_at_ms", of.getFinishedAtMs());
        ArrayNode passes = json.putArray("pass_at_k");
        of.getPassAtK()
                .forEach(estimate -> passes.addObject()
                        .put("k", estimate.getK())
                        .put("unbiased", estimate.getUnbiased())
                        .put("low", estimate.getLow())
                        .put("high", estimate.getHigh())
                        .put("bernoulli", estimate.getBernoulli())
                        .put("beta_binomial", estimate.getBetaBinomial()));
        BetaFit fit = of.getBetaFit();
        if (fit == null) {
            json.putNull("beta_fit");
        } else {
            json.putObject("beta_fit").put("alpha", fit.getAlpha()).put("beta", fit.getBeta());
        }
        ArrayNode bins = json.putArray("difficulties");
        of.getDifficulties()
                .forEach(bin -> bins.addObject()
                        .put("from", bin.getFrom())
                        .put("to", bin.getTo())
                        .put("prompts", bin.getPrompts())
                        .put("responses", bin.getResponses())
                        .put("tokens_mean", bin.getTokensMean())
                        .put("truncated_share", bin.getTruncatedShare()));
        return json;
    }
}
