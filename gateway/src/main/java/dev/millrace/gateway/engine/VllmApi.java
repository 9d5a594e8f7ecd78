package dev.millrace.gateway.engine;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.gateway.engine.EngineApi.EngineAnswer;
import dev.millrace.gateway.engine.EngineApi.EngineCall;
import dev.millrace.gateway.engine.EngineApi.WeightChange;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.SamplingParameters;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * vLLM with {@code VLLM_SERVER_DEV_MODE=1} (documentation of v0.32, September 2026): {@code /pause}, {@code
 * /collective_rpc} with {@code reload_weights}, {@code /update_weight_version}, {@code /resume}, {@code /weight_info};
 * {@code /v1/completions} without versions if updates wait for answers, else {@code /inference/v1/generate}.
 */
final class VllmApi implements EngineApi {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final Duration QUESTION_LIMIT = Duration.ofSeconds(30);
    private static final String DEV_MODE =
            "; start vLLM with VLLM_SERVER_DEV_MODE=1, in a version that has /weight_info and /update_weight_version";

    private final EngineHttp http;
    private final EngineConfig config;
    private final boolean namesVersions;
    private volatile String model;

    /** @param change other than {@link WeightChange#DRAINED} needs answers that name their versions */
    VllmApi(EngineHttp http, EngineConfig config, WeightChange change) {
        this.http = http;
        this.config = config;
        this.namesVersions = change != WeightChange.DRAINED;
        this.model = config.model();
    }

    @Override
    public EngineIdentity identity() {
        JsonNode version = http.get("/version", QUESTION_LIMIT).path("version");
        if (!version.isTextual()) {
            throw EngineException.unfit("what answers at " + http.url() + " does not say a version as vLLM does");
        }
        List<String> served = new ArrayList<>();
        for (JsonNode each : http.get("/v1/models", QUESTION_LIMIT).path("data")) {
            if (each.path("parent").isMissingNode() || each.path("parent").isNull()) { // else an adapter
                served.add(each.path("id").asText());
            }
        }
        if (config.model().isEmpty() && served.size() == 1) {
            model = served.get(0);
        } else if (!served.contains(config.model())) {
            throw EngineException.unfit("vLLM at " + http.url() + " serves " + served + ", and engine.model is '"
                    + config.model() + "'; name one of them");
        }
        label();
        return new EngineIdentity("vllm", version.textValue(), config.dtype().torchName(), null);
    }

    @Override
    public void pause(WeightChange change) {
        control("/pause?mode=" + (change == WeightChange.DRAINED ? "wait" : "keep"), null);
    }

    @Override
    public void load(String path, String label, WeightChange change) {
        ObjectNode reload = NODES.objectNode().put("method", "reload_weights");
        reload.putObject("kwargs").put("weights_path", path);
        control("/collective_rpc", reload);
        if (change != WeightChange.KEEP) {
            JsonNode reset = control(
                    "/reset_prefix_cache" + (change == WeightChange.RECOMPUTE ? "?reset_running_requests=true" : ""),
                    null);
            if (!reset.path("success").asBoolean(true)) {
                throw EngineException.failed(
                        "vLLM did not drop the keys and values of earlier weights (/reset_prefix_cache: "
                                + AnswerNumbers.shown(reset) + ")");
            }
        }
        control("/update_weight_version", NODES.objectNode().put("new_version", label));
    }

    @Override
    public void resume() {
        control("/resume", null);
    }

    private JsonNode control(String path, @Nullable ObjectNode body) {
        try {
            return http.post(path, body, Duration.ofMillis(config.updateMs()));
        } catch (EngineException e) {
            throw hinted(e);
        }
    }

    private static EngineException hinted(EngineException problem) {
        return problem.kind() == EngineException.Kind.UNFIT
                ? EngineException.unfit(problem.getMessage() + DEV_MODE)
                : problem;
    }

    @Override
    public String label() {
        try {
            return http.get("/weight_info", QUESTION_LIMIT)
                    .path("weight_version")
                    .asText();
        } catch (EngineException e) {
            throw hinted(e);
        }
    }

    @Override
    public boolean isSeeded() {
        return true;
    }

    @Override
    public EngineCall call(TurnOrder order, String label) {
        ObjectNode body = NODES.objectNode().put("model", model).put("cache_salt", "millrace-" + label);
        if (namesVersions) {
            body.put("return_token_ids", true).set("token_ids", ids(order.promptTokens()));
            sampling(body.putObject("sampling_params"), order)
                    .put("detokenize", !order.stopTexts().isEmpty());
            return new EngineCall("/inference/v1/generate", body);
        }
        body.put("return_token_ids", true).set("prompt", ids(order.promptTokens()));
        return new EngineCall("/v1/completions", sampling(body, order));
    }

    /** Everything explicit, or generation_config.json would decide. */
    private static ObjectNode sampling(ObjectNode into, TurnOrder order) {
        SamplingParameters sampling = order.sampling();
        into.put("n", 1)
                .put("max_tokens", sampling.getMaxTokens())
                .put("temperature", sampling.getTemperature())
                .put("top_p", 1.0)
                .put("top_k", 0)
                .put("min_p", 0.0)
                .put("repetition_penalty", 1.0)
                .put("presence_penalty", 0.0)
                .put("frequency_penalty", 0.0)
                .put("seed", sampling.getSeed())
                .put("logprobs", 0)
                .put("ignore_eos", true); // the stop reason
        into.set(
                "stop_token_ids",
                ids(order.stopTokens().stream().mapToInt(Integer::intValue).toArray()));
        if (!order.stopTexts().isEmpty()) {
            order.stopTexts().forEach(into.putArray("stop")::add);
        }
        return into;
    }

    static JsonNode ids(int[] tokens) {
        var list = NODES.arrayNode(tokens.length);
        for (int token : tokens) {
            list.add(token);
        }
        return list;
    }

    @Override
    public EngineAnswer read(JsonNode answer, TurnOrder order) {
        JsonNode choices = answer.path("choices");
        if (choices.size() != 1) {
            throw EngineException.untrue("vLLM was asked for one choice and answered with " + choices.size());
        }
        JsonNode choice = choices.get(0);
        AnswerNumbers.requirePrompt(
                namesVersions ? answer.path("prompt_token_ids") : choice.path("prompt_token_ids"), order);
        AnswerNumbers.requireCount(answer.path("usage").path("prompt_tokens"), order);
        int[] tokens = AnswerNumbers.tokens(choice.path("token_ids"), "choices[0].token_ids");
        float[] logProbs = namesVersions ? ofContent(choice, tokens) : ofTokens(choice);
        AnswerNumbers.require(order, tokens, logProbs);
        JsonNode cached = answer.path("usage").path("prompt_tokens_details").path("cached_tokens");
        return new EngineAnswer(
                tokens,
                logProbs,
                AnswerNumbers.spans(choice.path("weight_versions"), tokens.length),
                null,
                isCutOff(choice.path("finish_reason").asText()),
                cached.isInt() ? cached.intValue() : -1);
    }

    private static boolean isCutOff(String reason) {
        return switch (reason) {
            case "length" -> true;
            case "stop" -> false;
            case "abort", "error" ->
                throw EngineException.failed("vLLM aborted the answer (finish_reason " + reason + ")");
            default ->
                throw EngineException.untrue("an answer ends with finish_reason stop or length: '" + reason + "'");
        };
    }

    private static float[] ofTokens(JsonNode choice) {
        JsonNode list = choice.path("logprobs").path("token_logprobs");
        float[] logProbs = new float[list.size()];
        for (int i = 0; i < logProbs.length; i++) {
            logProbs[i] = AnswerNumbers.logProb(list.get(i), i);
        }
        return logProbs;
    }

    private static float[] ofContent(JsonNode choice, int[] tokens) {
        JsonNode list = choice.path("logprobs").path("content");
        float[] logProbs = new float[list.size()];
        for (int i = 0; i < logProbs.length; i++) {
            if (i < tokens.length && list.get(i).path("token_id").asInt(-1) != tokens[i]) {
                throw EngineException.untrue("token " + i + " of the answer is " + tokens[i]
                        + ", and its log-prob is of token " + list.get(i).path("token_id"));
            }
            logProbs[i] = AnswerNumbers.logProb(list.get(i).path("logprob"), i);
        }
        return logProbs;
    }
}
