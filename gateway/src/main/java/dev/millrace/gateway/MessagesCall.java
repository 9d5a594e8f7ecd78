package dev.millrace.gateway;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Iterator;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Converts a call of {@code /v1/messages} to a chat: {@code system} becomes the first message, tool results become
 * messages, tools become functions.
 */
final class MessagesCall {
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

    private MessagesCall(JsonNode body) {
        this.body = body;
    }

    /** @throws RefusedCallException naming the unsupported or invalid field */
    static ObjectNode asChat(JsonNode body) {
        if (!body.isObject()) {
            throw RefusedCallException.invalid(null, "the body must be a JSON object");
        }
        return new MessagesCall(body).chat();
    }

    private ObjectNode chat() {
        for (Iterator<String> names = body.fieldNames(); names.hasNext(); ) {
            String name = names.next();
            if (!KNOWN.contains(name) && !ASIDE.contains(name) && isGiven(body.get(name))) {
                throw RefusedCallException.unsupported(
                        name,
                        name
                                + " is not done here, and an answer without it would not be what was asked for; leave it out");
            }
        }
        if (!body.path("max_tokens").isIntegralNumber()) {
            throw RefusedCallException.invalid(
                    "max_tokens", "max_tokens must be a whole number: " + body.path("max_tokens"));
        }
        if (isGiven(body.path("thinking"))
                && !body.at("/thinking/type").asText().equals("disabled")) {
            throw RefusedCallException.unsupported(
                    "thinking", "thinking can be disabled alone: " + body.get("thinking"));
        }
        ObjectNode chat = NODES.objectNode();
        for (String same : Set.of("model", "max_tokens", "stream", "temperature", "top_p", "top_k")) {
            if (isGiven(body.path(same))) {
                chat.set(same, body.get(same));
            }
        }
        if (isGiven(body.path("stop_sequences"))) {
            chat.set("stop", body.get("stop_sequences"));
        }
        ArrayNode messages = chat.putArray("messages");
        if (isGiven(body.path("system"))) {
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

    private static boolean isGiven(JsonNode value) {
        return !value.isMissingNode() && !value.isNull();
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
                if (!block.path("name").isTextual() || isGiven(input) && !input.isObject()) {
                    throw RefusedCallException.invalid(
                            place,
                            place + "[" + i + "] must have a name and an input that is an object: " + shown(block));
                }
                ObjectNode call = calls.addObject();
                call.put("id", block.path("id").asText()).put("type", "function");
                call.putObject("function")
                        .put("name", block.path("name").asText())
                        .put("arguments", isGiven(input) ? input.toString() : "{}");
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
        if (!isGiven(content)) {
            return "";
        }
        if (!content.path("type").asText().equals("text")
                || !content.path("text").isTextual()) {
            throw RefusedCallException.unsupported(
                    place,
                    place + " is a block of the type '" + content.path("type").asText()
                            + "', and the policy reads text alone");
        }
        return content.get("text").textValue();
    }

    private void tools(ObjectNode chat) {
        JsonNode choice = body.path("tool_choice");
        String type = choice.path("type").asText();
        if (isGiven(choice) && !type.equals("auto") && !type.equals("none")) {
            throw RefusedCallException.unsupported(
                    "tool_choice",
                    "tool_choice can be auto or none, since nothing forces the policy to call a tool: " + choice);
        }
        if (isGiven(body.path("tools")) && !body.get("tools").isArray()) {
            throw RefusedCallException.invalid("tools", "tools must be a list of objects: " + shown(body.get("tools")));
        }
        if (!isGiven(body.path("tools")) || type.equals("none")) {
            return;
        }
        ArrayNode functions = chat.putArray("tools");
        for (JsonNode tool : body.get("tools")) {
            String kind = tool.path("type").asText("custom");
            if (!kind.equals("custom") || !tool.path("name").isTextual()) {
                throw RefusedCallException.unsupported(
                        "tools", "tools can be those of the agent alone, with name and input_schema: " + shown(tool));
            }
            ObjectNode function = functions.addObject().put("type", "function").putObject("function");
            function.set("name", tool.get("name"));
            if (isGiven(tool.path("description"))) {
                function.set("description", tool.get("description"));
            }
            function.set(
                    "parameters", isGiven(tool.path("input_schema")) ? tool.get("input_schema") : NODES.objectNode());
        }
    }

    private static String shown(@Nullable JsonNode value) {
        String text = String.valueOf(value);
        return text.length() <= 80 ? text : text.substring(0, 80) + "...";
    }
}
