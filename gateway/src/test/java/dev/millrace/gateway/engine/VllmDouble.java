package dev.millrace.gateway.engine;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.gateway.engine.EngineConfig.EngineLogProbs;
import dev.millrace.policy.weights.Weights;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** Double of {@code vllm serve --enable-scale-out} with {@code VLLM_SERVER_DEV_MODE=1}. */
public final class VllmDouble extends EngineDouble {
    private static final Set<String> SAMPLING = Set.of(
            "n",
            "max_tokens",
            "temperature",
            "top_p",
            "top_k",
            "min_p",
            "repetition_penalty",
            "presence_penalty",
            "frequency_penalty",
            "seed",
            "logprobs",
            "ignore_eos",
            "stop_token_ids",
            "stop",
            "detokenize");
    private static final Map<String, Double> NEUTRAL = Map.of(
            "n", 1.0,
            "top_p", 1.0,
            "top_k", 0.0,
            "min_p", 0.0,
            "repetition_penalty", 1.0,
            "presence_penalty", 0.0,
            "frequency_penalty", 0.0,
            "logprobs", 0.0);

    private final boolean isDevMode;

    public VllmDouble(Weights base, EngineLogProbs logProbs) {
        this(base, logProbs, true);
    }

    /** @param isDevMode without, it has no endpoints for updates */
    VllmDouble(Weights base, EngineLogProbs logProbs, boolean isDevMode) {
        super(base, logProbs);
        this.isDevMode = isDevMode;
    }

    @Override
    String firstLabel() {
        return "default";
    }

    @Override
    ObjectNode answer(String method, String path, Map<String, String> query, JsonNode body) {
        ObjectNode answer = JSON.createObjectNode();
        switch (method + " " + path) {
            case "GET /version" -> answer.put("version", "0.32.0");
            case "GET /v1/models" -> {
                answer.put("object", "list");
                answer.putArray("data").addObject().put("id", "policy").putNull("parent");
            }
            case "POST /v1/completions" -> completion(body, answer);
            case "POST /inference/v1/generate" -> generate(body, answer);
            default -> {
                if (!isDevMode) {
                    throw new RefusedException(404, "Not Found");
                }
                control(method + " " + path, query, body, answer);
            }
        }
        return answer;
    }

    private void control(String call, Map<String, String> query, JsonNode body, ObjectNode answer) {
        switch (call) {
            case "GET /weight_info" -> answer.put("weight_version", label());
            case "POST /pause" -> {
                String mode = query.getOrDefault("mode", "abort");
                if (!Set.of("wait", "keep").contains(mode) || query.size() != 1) {
                    throw violation(422, "paused with " + query);
                }
                pause(mode.equals("wait"));
                answer.put("status", "paused");
            }
            case "POST /collective_rpc" -> {
                require(body, Set.of("method", "kwargs"), "method", "kwargs");
                if (!body.get("method").asText().equals("reload_weights")) {
                    throw violation(500, "no such method: " + body.get("method"));
                }
                require(body.get("kwargs"), Set.of("weights_path"), "weights_path");
                load(body.at("/kwargs/weights_path").asText());
                answer.putArray("results").addNull();
            }
            case "POST /reset_prefix_cache" -> {
                requirePaused("reset");
                answer.put("success", running() == 0 || Boolean.parseBoolean(query.get("reset_running_requests")));
            }
            case "POST /update_weight_version" -> {
                requirePaused("labelled");
                require(body, Set.of("new_version"), "new_version");
                label(body.get("new_version").textValue());
                answer.put("success", true).put("new_version", label());
            }
            case "POST /resume" -> {
                resume();
                answer.put("status", "resumed");
            }
            default -> throw violation(404, "there is no " + call);
        }
    }

    private Sampled sampled(JsonNode prompt, JsonNode sampling) {
        requireNeutral(sampling, NEUTRAL);
        if (!sampling.path("ignore_eos").asBoolean(false)) {
            throw violation(400, "the model's own end would end it");
        }
        return sample(
                ints(prompt),
                sampling.get("temperature").doubleValue(),
                sampling.get("max_tokens").intValue(),
                sampling.get("seed").longValue(),
                stops(sampling.path("stop_token_ids")));
    }

    private void completion(JsonNode body, ObjectNode answer) {
        Set<String> known = new HashSet<>(SAMPLING);
        known.addAll(Set.of("model", "prompt", "cache_salt", "return_token_ids"));
        known.remove("detokenize");
        require(body, known, "model", "prompt", "cache_salt", "return_token_ids", "seed");
        if (!body.get("model").asText().equals("policy")) {
            throw violation(404, "no model " + body.get("model"));
        }
        salted(body.get("cache_salt").textValue());
        Sampled sampled = sampled(body.get("prompt"), body);
        answer.put("object", "text_completion").put("model", "policy");
        ObjectNode choice = answer.putArray("choices").addObject();
        choice.put("index", 0).put("text", "").put("finish_reason", finishReason(sampled));
        int[] prompt = ints(body.get("prompt"));
        putAll(choice.putArray("prompt_token_ids"), prompt, fault() == Fault.REWRITES_PROMPTS);
        putAll(choice.putArray("token_ids"), sampled.tokens(), false);
        ArrayNode logProbs = choice.putObject("logprobs").putArray("token_logprobs");
        for (int i = fault() == Fault.LACKS_A_LOG_PROB ? 1 : 0; i < sampled.logProbs().length; i++) {
            logProbs.add(sampled.logProbs()[i]);
        }
        answer.putObject("usage").put("prompt_tokens", prompt.length).put("completion_tokens", sampled.tokens().length);
    }

    private String finishReason(Sampled sampled) {
        return fault() == Fault.GIVES_UP ? "error" : sampled.isCutOff() ? "length" : "stop";
    }

    private void generate(JsonNode body, ObjectNode answer) {
        require(
                body,
                Set.of("token_ids", "sampling_params", "model", "cache_salt", "return_token_ids"),
                "token_ids",
                "sampling_params",
                "cache_salt");
        require(body.get("sampling_params"), SAMPLING, "seed");
        salted(body.get("cache_salt").textValue());
        Sampled sampled = sampled(body.get("token_ids"), body.get("sampling_params"));
        answer.put("output_mode", "tokens");
        ObjectNode choice = answer.putArray("choices").addObject();
        choice.put("index", 0).put("finish_reason", finishReason(sampled));
        putAll(choice.putArray("token_ids"), sampled.tokens(), false);
        ArrayNode content = choice.putObject("logprobs").putArray("content");
        for (int i = fault() == Fault.LACKS_A_LOG_PROB ? 1 : 0; i < sampled.logProbs().length; i++) {
            content.addObject()
                    .put("token_id", fault() == Fault.OTHER_TOKENS ? sampled.tokens()[i] + 1 : sampled.tokens()[i])
                    .put("logprob", sampled.logProbs()[i]);
        }
        if (fault() != Fault.NAMES_NO_VERSIONS) {
            spans(sampled.labels(), choice.putArray("weight_versions"));
        }
        putAll(answer.putArray("prompt_token_ids"), ints(body.get("token_ids")), fault() == Fault.REWRITES_PROMPTS);
    }

    private static void putAll(ArrayNode list, int[] tokens, boolean isRewritten) {
        for (int token : tokens) {
            list.add(isRewritten ? token + 1 : token);
        }
    }
}
