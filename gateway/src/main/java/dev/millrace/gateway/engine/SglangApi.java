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

/**
 * SGLang (v0.5.18 and later, documentation of September 2026): {@code /pause_generation}, {@code
 * /update_weights_from_disk}, {@code /continue_generation}; {@code /generate} names versions per answer or token.
 */
final class SglangApi implements EngineApi {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final Duration QUESTION_LIMIT = Duration.ofSeconds(30);

    private final EngineHttp http;
    private final EngineConfig config;

    SglangApi(EngineHttp http, EngineConfig config) {
        this.http = http;
        this.config = config;
    }

    @Override
    public EngineIdentity identity() {
        JsonNode version = http.get("/server_info", QUESTION_LIMIT).path("version");
        if (!version.isTextual()) {
            throw EngineException.unfit("what answers at " + http.url() + " does not say a version as SGLang does");
        }
        label();
        return new EngineIdentity("sglang", version.textValue(), config.dtype().torchName(), null);
    }

    @Override
    public void pause(WeightChange change) {
        control(
                "/pause_generation",
                NODES.objectNode().put("mode", change == WeightChange.KEEP ? "in_place" : "retract"));
    }

    @Override
    public void load(String path, String label, WeightChange change) {
        ObjectNode body = NODES.objectNode();
        body.put("model_path", path).put("weight_version", label).put("flush_cache", change != WeightChange.KEEP);
        JsonNode done = control("/update_weights_from_disk", body);
        if (!done.path("success").asBoolean(false)) {
            throw EngineException.failed("SGLang did not load " + path + ": " + AnswerNumbers.shown(done));
        }
    }

    @Override
    public void resume() {
        control("/continue_generation", NODES.objectNode());
    }

    private JsonNode control(String path, ObjectNode body) {
        return http.post(path, body, Duration.ofMillis(config.updateMs()));
    }

    @Override
    public String label() {
        JsonNode label = http.get("/model_info", QUESTION_LIMIT).path("weight_version");
        if (!label.isValueNode()) {
            throw EngineException.unfit("SGLang at " + http.url()
                    + " does not say its weight_version; it is too old to be updated under a version's number");
        }
        return label.asText();
    }

    /** Only with --enable-deterministic-inference, which it does not report. */
    @Override
    public boolean isSeeded() {
        return false;
    }

    @Override
    public EngineCall call(TurnOrder order, String label) {
        SamplingParameters sampling = order.sampling();
        ObjectNode body = NODES.objectNode();
        body.put("return_logprob", true).put("stream", false).put("extra_key", "millrace-" + label);
        body.set("input_ids", VllmApi.ids(order.promptTokens()));
        ObjectNode parameters = body.putObject("sampling_params");
        parameters // everything explicit, or the model's generation_config.json would decide
                .put("n", 1)
                .put("max_new_tokens", sampling.getMaxTokens())
                .put("temperature", sampling.getTemperature())
                .put("top_p", 1.0)
                .put("top_k", -1)
                .put("min_p", 0.0)
                .put("repetition_penalty", 1.0)
                .put("presence_penalty", 0.0)
                .put("frequency_penalty", 0.0)
                .put("ignore_eos", order.stopTokens().isEmpty()) // it would also ignore stop_token_ids
                .put("skip_special_tokens", false)
                .put("no_stop_trim", true);
        if (!order.stopTokens().isEmpty()) {
            parameters.set(
                    "stop_token_ids",
                    VllmApi.ids(order.stopTokens().stream()
                            .mapToInt(Integer::intValue)
                            .toArray()));
        }
        if (!order.stopTexts().isEmpty()) {
            order.stopTexts().forEach(parameters.putArray("stop")::add);
        }
        return new EngineCall("/generate", body);
    }

    @Override
    public EngineAnswer read(JsonNode answer, TurnOrder order) {
        JsonNode meta = answer.path("meta_info");
        AnswerNumbers.requireCount(meta.path("prompt_tokens"), order);
        int[] tokens = AnswerNumbers.tokens(answer.path("output_ids"), "output_ids");
        JsonNode list = meta.path("output_token_logprobs");
        float[] logProbs = new float[list.size()];
        for (int i = 0; i < logProbs.length; i++) {
            if (i < tokens.length && list.get(i).path(1).asInt(-1) != tokens[i]) {
                throw EngineException.untrue("token " + i + " of the answer is " + tokens[i]
                        + ", and its log-prob is of token " + list.get(i).path(1));
            }
            logProbs[i] = AnswerNumbers.logProb(list.get(i).path(0), i);
        }
        AnswerNumbers.require(order, tokens, logProbs);
        JsonNode label = meta.path("weight_version");
        JsonNode cached = meta.path("cached_tokens");
        return new EngineAnswer(
                tokens,
                logProbs,
                AnswerNumbers.spans(meta.path("weight_versions"), tokens.length),
                label.isValueNode() && !label.isNull() ? label.asText() : null,
                isCutOff(meta.path("finish_reason").path("type").asText()),
                cached.isInt() ? cached.intValue() : -1);
    }

    private static boolean isCutOff(String reason) {
        return switch (reason) {
            case "length" -> true;
            case "stop" -> false;
            case "abort" -> throw EngineException.failed("SGLang aborted the answer (finish_reason abort)");
            default ->
                throw EngineException.untrue("an answer ends with finish_reason stop or length: '" + reason + "'");
        };
    }
}
