package dev.millrace.gateway;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.gateway.ToolFormat.ToolCall;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.TokenUsage;
import java.util.List;
import org.jspecify.annotations.Nullable;

final class MessagesAnswer {
    private static final ObjectMapper JSON = new ObjectMapper();

    private MessagesAnswer() {}

    /** @param chat the same answer in OpenAI's format */
    static ObjectNode of(PlayedTurn turn, AgentCall call, ObjectNode chat) {
        ObjectNode answer =
                head("msg_" + chat.path("id").asText(), chat.path("model").asText());
        ArrayNode content = answer.putArray("content");
        if (!turn.answer().content().isEmpty()) {
            content.addObject().put("type", "text").put("text", turn.answer().content());
        }
        List<ToolCall> calls = turn.answer().calls();
        for (int i = 0; i < calls.size(); i++) {
            ObjectNode use = content.addObject();
            use.put("type", "tool_use")
                    .put("id", turn.answer().callPrefix() + i)
                    .put("name", calls.get(i).name());
            use.set("input", input(calls.get(i)));
        }
        end(answer, turn, call);
        answer.set("usage", usage(turn.record().getUsage()));
        answer.set("millrace", chat.path("millrace"));
        return answer;
    }

    static ObjectNode head(String id, String model) {
        return JsonNodeFactory.instance
                .objectNode()
                .put("id", id)
                .put("type", "message")
                .put("role", "assistant")
                .put("model", model);
    }

    static JsonNode input(ToolCall call) {
        try {
            return JSON.readTree(call.arguments());
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("arguments that were read as JSON are none: " + call.arguments(), e);
        }
    }

    static void end(ObjectNode into, PlayedTurn turn, AgentCall call) {
        FinishReason reason = turn.record().getFinishReason();
        String stop = reason == FinishReason.STOP ? stopText(turn, call) : null;
        into.put(
                "stop_reason",
                reason == FinishReason.TOOL_CALLS
                        ? "tool_use"
                        : reason == FinishReason.LENGTH ? "max_tokens" : stop == null ? "end_turn" : "stop_sequence");
        into.put("stop_sequence", stop);
    }

    /** First stop text written; null after a stop token. */
    private static @Nullable String stopText(PlayedTurn turn, AgentCall call) {
        String first = null;
        int at = Integer.MAX_VALUE;
        for (String stop : call.sampling().stop()) {
            int there = turn.answer().written().indexOf(stop);
            if (there >= 0 && there < at) {
                first = stop;
                at = there;
            }
        }
        return first;
    }

    static ObjectNode usage(TokenUsage usage) {
        Integer cached = usage.getCachedTokens();
        int read = cached == null ? 0 : cached;
        return JsonNodeFactory.instance
                .objectNode()
                .put("input_tokens", usage.getPromptTokens() - read) // they count without what came from a cache
                .put("cache_creation_input_tokens", 0)
                .put("cache_read_input_tokens", read)
                .put("output_tokens", usage.getCompletionTokens());
    }

    static ObjectNode error(RefusedCallException refusal) {
        ObjectNode error = JsonNodeFactory.instance.objectNode().put("type", "error");
        error.putObject("error")
                .put(
                        "type",
                        switch (refusal.status()) {
                            case 401 -> "authentication_error";
                            case 404 -> "not_found_error";
                            case 413 -> "request_too_large";
                            case 408 -> "timeout_error";
                            case 429 -> "rate_limit_error";
                            case 500 -> "api_error";
                            case 503 -> "overloaded_error";
                            default -> "invalid_request_error";
                        })
                .put("message", refusal.getMessage());
        return error;
    }
}
