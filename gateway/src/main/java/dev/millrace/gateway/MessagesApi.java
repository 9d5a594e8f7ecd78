package dev.millrace.gateway;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.gateway.GatewayServer.StreamForm;
import dev.millrace.gateway.ToolFormat.ToolCall;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.TokenUsage;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Anthropic's Messages API, as the chat that says the same. */
final class MessagesApi {
    private static final ObjectMapper JSON = new ObjectMapper();

    private MessagesApi() {}

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

    /** Anthropic's stream: named events and content blocks, made from OpenAI chunks. */
    static final class Stream implements StreamForm {
        private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

        private final AgentCall call;
        private boolean isBegun;
        private boolean isTextOpen;
        private int block;

        Stream(AgentCall call) {
            this.call = call;
        }

        @Override
        public String of(ObjectNode piece) {
            StringBuilder events = new StringBuilder();
            if (!isBegun) {
                isBegun = true;
                ObjectNode begin = event("message_start");
                ObjectNode message = head(
                        "msg_" + piece.path("id").asText(), piece.path("model").asText());
                message.putArray("content");
                message.putNull("stop_reason");
                message.putNull("stop_sequence");
                message.putObject("usage").put("input_tokens", 0).put("output_tokens", 0); // the end has them
                begin.set("message", message);
                StreamForm.add(events, begin);
            }
            JsonNode delta = piece.path("choices").path(0).path("delta");
            String text = delta.path("content").asText("");
            if (!text.isEmpty()) {
                if (!isTextOpen) {
                    isTextOpen = true;
                    ObjectNode start = event("content_block_start").put("index", block);
                    start.putObject("content_block").put("type", "text").put("text", "");
                    StreamForm.add(events, start);
                }
                ObjectNode more = event("content_block_delta").put("index", block);
                more.putObject("delta").put("type", "text_delta").put("text", text);
                StreamForm.add(events, more);
            }
            for (JsonNode use : delta.path("tool_calls")) {
                closeText(events);
                ObjectNode start = event("content_block_start").put("index", block);
                start.putObject("content_block")
                        .put("type", "tool_use")
                        .put("id", use.path("id").asText())
                        .put("name", use.at("/function/name").asText())
                        .putObject("input");
                StreamForm.add(events, start);
                ObjectNode input = event("content_block_delta").put("index", block);
                input.putObject("delta")
                        .put("type", "input_json_delta")
                        .put("partial_json", use.at("/function/arguments").asText());
                StreamForm.add(events, input);
                StreamForm.add(events, event("content_block_stop").put("index", block++));
            }
            return events.toString();
        }

        private void closeText(StringBuilder events) {
            if (isTextOpen) {
                isTextOpen = false;
                StreamForm.add(events, event("content_block_stop").put("index", block++));
            }
        }

        @Override
        public String end(List<PlayedTurn> turns) {
            StringBuilder events = new StringBuilder();
            closeText(events);
            ObjectNode over = event("message_delta");
            MessagesApi.end(over.putObject("delta"), turns.get(0), call);
            over.set("usage", usage(turns.get(0).record().getUsage()));
            StreamForm.add(events, over);
            StreamForm.add(events, event("message_stop"));
            return events.toString();
        }

        @Override
        public String failed(RefusedCallException refusal) {
            StringBuilder events = new StringBuilder();
            StreamForm.add(events, error(refusal));
            return events.toString();
        }

        private static ObjectNode event(String type) {
            return NODES.objectNode().put("type", type);
        }
    }

    /**
     * Converts a call of {@code /v1/messages} to a chat: {@code system} becomes the first message, tool results become
     * messages, tools become functions.
     */
    static final class Call {
        private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
        private static final Set<String> KNOWN = Set.of(
                "model",
                "messages",
                "max_tokens",
                "system",
                "stop_sequences",
                "stream",
                "temperature",
                "top_p",
                "top_k",
                "tools",
                "tool_choice",
                "thinking");
        /** Without effect on sampling. */
        private static final Set<String> ASIDE = Set.of("metadata", "service_tier", "cache_control");

        private final JsonNode body;

        private Call(JsonNode body) {
            this.body = body;
        }

        /** @throws RefusedCallException naming the unsupported or invalid field */
        static ObjectNode asChat(JsonNode body) {
            ObjectNode chat = counted(body);
            if (!body.path("max_tokens").isIntegralNumber()) {
                throw RefusedCallException.invalid(
                        "max_tokens", "max_tokens must be a whole number: " + body.path("max_tokens"));
            }
            return chat;
        }

        /** The same where nothing is sampled, so that the answer needs no limit. */
        static ObjectNode counted(JsonNode body) {
            if (!body.isObject()) {
                throw RefusedCallException.invalid(null, "the body must be a JSON object");
            }
            return new Call(body).chat();
        }

        private ObjectNode chat() {
            for (Iterator<String> names = body.fieldNames(); names.hasNext(); ) {
                String name = names.next();
                if (!KNOWN.contains(name) && !ASIDE.contains(name) && CallReader.isGiven(body.get(name))) {
                    throw RefusedCallException.unsupported(name, name + " is not supported; leave it out");
                }
            }
            if (CallReader.isGiven(body.path("thinking"))
                    && !body.at("/thinking/type").asText().equals("disabled")) {
                throw RefusedCallException.unsupported(
                        "thinking", "thinking must be disabled: " + body.get("thinking"));
            }
            ObjectNode chat = NODES.objectNode();
            for (String same : Set.of("model", "max_tokens", "stream", "temperature", "top_p", "top_k")) {
                if (CallReader.isGiven(body.path(same))) {
                    chat.set(same, body.get(same));
                }
            }
            if (CallReader.isGiven(body.path("stop_sequences"))) {
                chat.set("stop", body.get("stop_sequences"));
            }
            ArrayNode messages = chat.putArray("messages");
            if (CallReader.isGiven(body.path("system"))) {
                messages.addObject().put("role", "system").put("content", text(body.get("system"), "system"));
            }
            if (!body.path("messages").isArray() || body.get("messages").isEmpty()) {
                throw RefusedCallException.invalid("messages", "messages must be a list with at least one message");
            }
            int at = 0;
            for (JsonNode message : body.get("messages")) {
                put(message, "messages[" + at++ + "]", messages);
            }
            tools(chat);
            return chat;
        }

        private static void put(JsonNode message, String place, ArrayNode into) {
            String role = message.path("role").asText();
            if (!role.equals("user") && !role.equals("assistant")) {
                throw RefusedCallException.invalid(
                        place + ".role", place + ".role must be user or assistant: '" + role + "'");
            }
            JsonNode content = message.path("content");
            if (content.isTextual()) {
                into.addObject().put("role", role).set("content", content);
            } else if (!content.isArray()) {
                throw RefusedCallException.invalid(
                        place + ".content", place + ".content must be a text or a list of blocks");
            } else if (role.equals("user")) {
                putUser(content, place + ".content", into);
            } else {
                putAssistant(content, place + ".content", into);
            }
        }

        private static void putUser(JsonNode blocks, String place, ArrayNode into) {
            StringBuilder said = new StringBuilder();
            boolean isSaid = false;
            for (int i = 0; i < blocks.size(); i++) {
                JsonNode block = blocks.get(i);
                if (block.path("type").asText().equals("tool_result")) {
                    putSaid(said, isSaid, into);
                    isSaid = false;
                    into.addObject()
                            .put("role", "tool")
                            .put("tool_call_id", block.path("tool_use_id").asText())
                            .put("content", text(block.path("content"), place + "[" + i + "].content"));
                } else {
                    said.append(text(block, place + "[" + i + "]"));
                    isSaid = true;
                }
            }
            putSaid(said, isSaid, into);
        }

        private static void putSaid(StringBuilder said, boolean isSaid, ArrayNode into) {
            if (isSaid) {
                into.addObject().put("role", "user").put("content", said.toString());
            }
            said.setLength(0);
        }

        private static void putAssistant(JsonNode blocks, String place, ArrayNode into) {
            ObjectNode message = into.addObject().put("role", "assistant");
            StringBuilder said = new StringBuilder();
            ArrayNode calls = NODES.arrayNode();
            for (int i = 0; i < blocks.size(); i++) {
                JsonNode block = blocks.get(i);
                if (block.path("type").asText().equals("tool_use")) {
                    JsonNode input = block.path("input");
                    if (!block.path("name").isTextual() || CallReader.isGiven(input) && !input.isObject()) {
                        throw RefusedCallException.invalid(
                                place,
                                place + "[" + i + "] must have a name and an input that is an object: "
                                        + CallReader.shown(block));
                    }
                    ObjectNode call = calls.addObject();
                    call.put("id", block.path("id").asText()).put("type", "function");
                    call.putObject("function")
                            .put("name", block.path("name").asText())
                            .put("arguments", CallReader.isGiven(input) ? input.toString() : "{}");
                } else {
                    said.append(text(block, place + "[" + i + "]"));
                }
            }
            message.put("content", said.toString());
            if (!calls.isEmpty()) {
                message.set("tool_calls", calls);
            }
        }

        /** A text, a text block, or a list of these. */
        private static String text(JsonNode content, String place) {
            if (content.isTextual()) {
                return content.textValue();
            }
            if (content.isArray()) {
                StringBuilder all = new StringBuilder();
                for (int i = 0; i < content.size(); i++) {
                    all.append(text(content.get(i), place + "[" + i + "]"));
                }
                return all.toString();
            }
            if (!CallReader.isGiven(content)) {
                return "";
            }
            if (!content.path("type").asText().equals("text")
                    || !content.path("text").isTextual()) {
                throw RefusedCallException.unsupported(
                        place,
                        place + " is a block of the type '"
                                + content.path("type").asText() + "', and the policy reads only text");
            }
            return content.get("text").textValue();
        }

        private void tools(ObjectNode chat) {
            JsonNode choice = body.path("tool_choice");
            String type = choice.path("type").asText();
            if (CallReader.isGiven(choice) && !type.equals("auto") && !type.equals("none")) {
                throw RefusedCallException.unsupported(
                        "tool_choice",
                        "tool_choice must be auto or none, since the policy cannot be forced to call a tool: "
                                + choice);
            }
            if (CallReader.isGiven(body.path("tools")) && !body.get("tools").isArray()) {
                throw RefusedCallException.invalid(
                        "tools", "tools must be a list of objects: " + CallReader.shown(body.get("tools")));
            }
            if (!CallReader.isGiven(body.path("tools")) || type.equals("none")) {
                return;
            }
            ArrayNode functions = chat.putArray("tools");
            for (JsonNode tool : body.get("tools")) {
                String kind = tool.path("type").asText("custom");
                if (!kind.equals("custom") || !tool.path("name").isTextual()) {
                    throw RefusedCallException.unsupported(
                            "tools",
                            "tools must be the agent's own, with name and input_schema: " + CallReader.shown(tool));
                }
                ObjectNode function =
                        functions.addObject().put("type", "function").putObject("function");
                function.set("name", tool.get("name"));
                if (CallReader.isGiven(tool.path("description"))) {
                    function.set("description", tool.get("description"));
                }
                function.set(
                        "parameters",
                        CallReader.isGiven(tool.path("input_schema")) ? tool.get("input_schema") : NODES.objectNode());
            }
        }
    }
}
