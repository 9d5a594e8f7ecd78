package dev.millrace.gateway.engine;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.gateway.engine.EngineConfig.EngineLogProbs;
import dev.millrace.policy.weights.Weights;
import java.util.Map;
import java.util.Set;

/** Double of SGLang's server. */
public final class SglangDouble extends EngineDouble {
    private static final Map<String, Double> NEUTRAL = Map.of(
            "n", 1.0,
            "top_p", 1.0,
            "top_k", -1.0,
            "min_p", 0.0,
            "repetition_penalty", 1.0,
            "presence_penalty", 0.0,
            "frequency_penalty", 0.0);
    private static final Set<String> SAMPLING = Set.of(
            "n",
            "max_new_tokens",
            "temperature",
            "top_p",
            "top_k",
            "min_p",
            "repetition_penalty",
            "presence_penalty",
            "frequency_penalty",
            "ignore_eos",
            "stop_token_ids",
            "stop",
            "skip_special_tokens",
            "no_stop_trim");

    private String pausedFor = "";
    private long seed = 1;

    public SglangDouble(Weights base, EngineLogProbs logProbs) {
        super(base, logProbs);
    }

    @Override
    String firstLabel() {
        return "default";
    }

    @Override
    ObjectNode answer(String method, String path, Map<String, String> query, JsonNode body) {
        ObjectNode answer = JSON.createObjectNode();
        switch (method + " " + path) {
            case "GET /server_info" -> answer.put("version", "0.5.18");
            case "GET /model_info" -> answer.put("model_path", "policy").put("weight_version", label());
            case "POST /pause_generation" -> {
                require(body, Set.of("mode"), "mode");
                pausedFor = body.get("mode").asText();
                if (!Set.of("retract", "in_place").contains(pausedFor)) {
                    throw violation(400, "paused with " + body);
                }
                pause(false);
                answer.put("status", "ok");
            }
            case "POST /update_weights_from_disk" -> {
                require(body, Set.of("model_path", "weight_version", "flush_cache"), "model_path", "weight_version");
                if (pausedFor.equals("in_place") && body.path("flush_cache").asBoolean(true) && running() > 0) {
                    throw violation(400, "flushed a request that keeps its keys and values");
                }
                load(body.get("model_path").asText());
                label(body.get("weight_version").textValue());
                answer.put("success", true).put("message", "").put("num_paused_requests", running());
            }
            case "POST /continue_generation" -> {
                require(body, Set.of());
                resume();
                answer.put("status", "ok");
            }
            case "POST /generate" -> generate(body, answer);
            default -> throw violation(404, "there is no " + method + " " + path);
        }
        return answer;
    }

    private void generate(JsonNode body, ObjectNode answer) {
        require(
                body,
                Set.of("input_ids", "sampling_params", "return_logprob", "stream", "extra_key"),
                "input_ids",
                "return_logprob",
                "extra_key");
        JsonNode sampling = body.get("sampling_params");
        require(sampling, SAMPLING, "temperature", "max_new_tokens");
        requireNeutral(sampling, NEUTRAL);
        if (sampling.path("ignore_eos").asBoolean()
                && sampling.path("stop_token_ids").size() > 0) {
            throw violation(400, "stop_token_ids are ignored with ignore_eos");
        }
        salted(body.get("extra_key").textValue());
        long drawn;
        synchronized (this) {
            drawn = seed += 1000;
        }
        int[] prompt = ints(body.get("input_ids"));
        Sampled sampled = sample(
                prompt,
                sampling.get("temperature").doubleValue(),
                sampling.get("max_new_tokens").intValue(),
                drawn,
                stops(sampling.path("stop_token_ids")));
        answer.put("text", "");
        ArrayNode ids = answer.putArray("output_ids");
        ObjectNode meta = answer.putObject("meta_info");
        ArrayNode logProbs = meta.putArray("output_token_logprobs");
        for (int i = 0; i < sampled.tokens().length; i++) {
            ids.add(sampled.tokens()[i]);
            if (fault() != Fault.LACKS_A_LOG_PROB || i > 0) {
                logProbs.addArray()
                        .add(sampled.logProbs()[i])
                        .add(fault() == Fault.OTHER_TOKENS ? sampled.tokens()[i] + 1 : sampled.tokens()[i])
                        .addNull();
            }
        }
        meta.putObject("finish_reason")
                .put("type", fault() == Fault.GIVES_UP ? "abort" : sampled.isCutOff() ? "length" : "stop");
        meta.put("prompt_tokens", fault() == Fault.REWRITES_PROMPTS ? prompt.length + 1 : prompt.length)
                .put("completion_tokens", sampled.tokens().length)
                .put("cached_tokens", 0)
                .put("weight_version", label());
        if (fault() != Fault.NAMES_NO_VERSIONS) {
            spans(sampled.labels(), meta.putArray("weight_versions"));
        }
    }
}
