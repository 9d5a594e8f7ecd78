package dev.millrace.gateway;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.gateway.GatewayServer.StreamForm;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * OpenAI's Responses API, as the chat that says the same. Nothing is stored: each call carries its whole conversation.
 */
final class ResponsesApi {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private static final Set<String> KNOWN = Set.of(
            "input", "instructions", "tools", "tool_choice", "max_output_tokens", "text", "include", "reasoning");
    /** Passed on to the chat. */
    private static final Set<String> SAME =
            Set.of("model", "stream", "temperature", "top_p", "top_k", "min_p", "seed", "stop");
    /** Without effect on sampling. */
    private static final Set<String> ASIDE = Set.of(
            "metadata",
            "user",
            "store",
            "service_tier",
            "safety_identifier",
            "prompt_cache_key",
            "prompt_cache_retention",
            "parallel_tool_calls",
            "stream_options");
    /** Known fields that are accepted only with these values. */
    private static final Map<String, String> HARMLESS =
            Map.of("truncation", "\"disabled\"", "background", "false", "top_logprobs", "0");
    /** Why a field is refused that would have the gateway keep what the session's log keeps. */
    private static final String STATELESS = " is not supported: send the whole conversation as input";

    private static final Set<String> PARTS = Set.of("input_text", "output_text", "refusal");
    private static final String LOG_PROBS = "message.output_text.logprobs";
    /** Asks for nothing here, since the policy's reasoning is in its text. */
    private static final String REASONING = "reasoning.encrypted_content";

    private final JsonNode body;

    /** @throws RefusedCallException if the body is no object */
    ResponsesApi(JsonNode body) {
        if (!body.isObject()) {
            throw RefusedCallException.invalid(null, "the body must be a JSON object");
        }
        this.body = body;
    }

    /** @throws RefusedCallException naming the unsupported or invalid field */
    ObjectNode asChat() {
        for (Iterator<String> names = body.fieldNames(); names.hasNext(); ) {
            requireKnown(names.next());
        }
        ObjectNode chat = NODES.objectNode();
        for (String same : SAME) {
            if (isGiven(same)) {
                chat.set(same, body.get(same));
            }
        }
        if (isGiven("max_output_tokens")) {
            JsonNode most = body.get("max_output_tokens");
            if (!most.isIntegralNumber() || !most.canConvertToInt() || most.intValue() < 1) {
                throw RefusedCallException.invalid(
                        "max_output_tokens", "max_output_tokens must be a whole number from 1 on: " + most);
            }
            chat.set("max_tokens", most);
        }
        requireText();
        requireNoReasoning();
        chat.put("logprobs", wantsLogProbs());
        ArrayNode messages = chat.putArray("messages");
        if (isGiven("instructions")) {
            messages.addObject()
                    .put("role", "system")
                    .put("content", CallReader.text(body.get("instructions"), "instructions", PARTS));
        }
        putInput(messages);
        putTools(chat);
        return chat;
    }

    private boolean isGiven(String name) {
        return CallReader.isGiven(body.path(name));
    }

    private void requireKnown(String name) {
        if (!isGiven(name) || KNOWN.contains(name) || SAME.contains(name) || ASIDE.contains(name)) {
            return;
        }
        if (name.equals("previous_response_id") || name.equals("conversation")) {
            throw RefusedCallException.unsupported(name, name + STATELESS);
        }
        if (!body.get(name).toString().equals(HARMLESS.get(name))) {
            throw RefusedCallException.unsupported(
                    name, name + " is not supported: " + CallReader.shown(body.get(name)) + "; leave it out");
        }
    }

    private void requireText() {
        JsonNode text = body.path("text");
        String format = text.path("format").path("type").asText("text");
        String verbosity = text.path("verbosity").asText("medium");
        if (isGiven("text") && (!text.isObject() || !format.equals("text") || !verbosity.equals("medium"))) {
            throw RefusedCallException.unsupported(
                    "text",
                    "text must have the format text and no other verbosity than medium, since nothing but its training"
                            + " decides what the policy writes: " + CallReader.shown(text));
        }
    }

    private void requireNoReasoning() {
        if (isGiven("reasoning") && !body.get("reasoning").isObject()) {
            throw RefusedCallException.invalid(
                    "reasoning", "reasoning must be an object: " + CallReader.shown(body.get("reasoning")));
        }
        for (JsonNode each : body.path("reasoning")) {
            if (CallReader.isGiven(each) && !each.asText().equals("none")) {
                throw RefusedCallException.unsupported(
                        "reasoning",
                        "reasoning must be left out or have the effort none, since the policy's reasoning is in its text: "
                                + CallReader.shown(body.get("reasoning")));
            }
        }
    }

    private boolean wantsLogProbs() {
        if (isGiven("include") && !body.get("include").isArray()) {
            throw RefusedCallException.invalid(
                    "include", "include must be a list of texts: " + CallReader.shown(body.get("include")));
        }
        boolean wanted = false;
        for (JsonNode each : body.path("include")) {
            if (!each.asText().equals(LOG_PROBS) && !each.asText().equals(REASONING)) {
                throw RefusedCallException.unsupported(
                        "include", "include may name only " + LOG_PROBS + " and " + REASONING + ": " + each);
            }
            wanted |= each.asText().equals(LOG_PROBS);
        }
        return wanted;
    }

    private void putInput(ArrayNode messages) {
        JsonNode input = body.path("input");
        if (input.isTextual()) {
            messages.addObject().put("role", "user").set("content", input);
            return;
        }
        if (!input.isArray() || input.isEmpty()) {
            throw RefusedCallException.invalid(
                    "input", "input must be a text or a list with at least one item: " + CallReader.shown(input));
        }
        for (int i = 0; i < input.size(); i++) {
            putItem(input.get(i), "input[" + i + "]", messages);
        }
    }

    private static void putItem(JsonNode item, String place, ArrayNode messages) {
        String type = item.path("type").asText(item.has("role") ? "message" : "");
        switch (type) {
            case "message" ->
                messages.addObject()
                        .put("role", role(item, place))
                        .put("content", CallReader.text(item.path("content"), place + ".content", PARTS));
            case "function_call" -> {
                if (!item.path("name").isTextual() || !item.path("arguments").isTextual()) {
                    throw RefusedCallException.invalid(
                            place, place + " must have a name and arguments that are texts: " + CallReader.shown(item));
                }
                ObjectNode call = calls(messages).addObject();
                call.put("id", item.path("call_id").asText()).put("type", "function");
                call.putObject("function")
                        .put("name", item.get("name").textValue())
                        .put("arguments", item.get("arguments").textValue());
            }
            case "function_call_output" ->
                messages.addObject()
                        .put("role", "tool")
                        .put("tool_call_id", item.path("call_id").asText())
                        .put("content", CallReader.text(item.path("output"), place + ".output", PARTS));
            default ->
                throw RefusedCallException.unsupported(
                        place,
                        place + " has the type '" + type
                                + "', and only message, function_call and function_call_output are read");
        }
    }

    private static String role(JsonNode message, String place) {
        String role = message.path("role").asText();
        return switch (role) {
            case "user", "assistant", "system" -> role;
            case "developer" -> "system"; // which templates know
            default ->
                throw RefusedCallException.invalid(
                        place + ".role", place + ".role must be user, assistant, system or developer: '" + role + "'");
        };
    }

    /** The calls of the answer that the last message belongs to: an answer's text and its calls are items of their own. */
    private static ArrayNode calls(ArrayNode messages) {
        JsonNode last = messages.path(messages.size() - 1);
        ObjectNode answer = last.path("role").asText().equals("assistant")
                ? (ObjectNode) last
                : messages.addObject().put("role", "assistant").put("content", "");
        return answer.withArrayProperty("tool_calls");
    }

    private void putTools(ObjectNode chat) {
        if (isGiven("tool_choice")) {
            chat.set("tool_choice", body.get("tool_choice"));
        }
        if (!isGiven("tools")) {
            return;
        }
        if (!body.get("tools").isArray()) {
            throw RefusedCallException.invalid(
                    "tools", "tools must be a list of objects: " + CallReader.shown(body.get("tools")));
        }
        ArrayNode tools = chat.putArray("tools");
        for (JsonNode tool : body.get("tools")) {
            if (!tool.path("type").asText().equals("function")
                    || !tool.path("name").isTextual()) {
                throw RefusedCallException.unsupported(
                        "tools", "tools must be functions of the agent, with a name: " + CallReader.shown(tool));
            }
            ObjectNode function = tools.addObject().put("type", "function").putObject("function");
            for (String same : List.of("name", "description", "parameters")) {
                if (CallReader.isGiven(tool.path(same))) {
                    function.set(same, tool.get(same));
                }
            }
        }
    }

    /** @param chat the same answer as a chat completion */
    ObjectNode answer(PlayedTurn turn, ObjectNode chat) {
        JsonNode choice = chat.path("choices").path(0);
        boolean isWhole = !choice.path("finish_reason").asText().equals("length");
        ObjectNode answer = head(
                chat.path("id").asText(),
                chat.path("created").asLong(),
                chat.path("model").asText(),
                isWhole ? "completed" : "incomplete");
        if (!isWhole) {
            answer.putObject("incomplete_details").put("reason", "max_output_tokens");
        }
        ArrayNode output = answer.putArray("output");
        if (!turn.answer().content().isEmpty() || turn.answer().calls().isEmpty()) {
            output.add(message(
                    chat.path("id").asText(),
                    isWhole ? "completed" : "incomplete",
                    turn.answer().content(),
                    choice.path("logprobs").path("content")));
        }
        AnswerJson.toolCalls(turn.answer(), false).forEach(call -> output.add(functionCall(call, "completed")));
        JsonNode used = chat.path("usage");
        ObjectNode usage = answer.putObject("usage");
        usage.set("input_tokens", used.path("prompt_tokens"));
        usage.putObject("input_tokens_details")
                .put(
                        "cached_tokens",
                        used.at("/prompt_tokens_details/cached_tokens").asInt(0));
        usage.set("output_tokens", used.path("completion_tokens"));
        usage.putObject("output_tokens_details").put("reasoning_tokens", 0);
        usage.set("total_tokens", used.path("total_tokens"));
        answer.set("millrace", chat.path("millrace"));
        return answer;
    }

    private ObjectNode head(String id, long createdSeconds, String model, String status) {
        ObjectNode head = NODES.objectNode()
                .put("id", "resp_" + id)
                .put("object", "response")
                .put("created_at", createdSeconds)
                .put("status", status)
                .put("model", model)
                .put("store", false)
                .put("truncation", "disabled")
                .put("parallel_tool_calls", true);
        for (String none : List.of("error", "incomplete_details", "previous_response_id", "usage")) {
            head.putNull(none);
        }
        for (String asked : List.of("instructions", "max_output_tokens", "metadata", "temperature", "top_p")) {
            head.set(asked, isGiven(asked) ? body.get(asked) : NODES.nullNode());
        }
        head.set("tool_choice", isGiven("tool_choice") ? body.get("tool_choice") : NODES.textNode("auto"));
        head.set("tools", isGiven("tools") ? body.get("tools") : NODES.arrayNode());
        head.putObject("text").putObject("format").put("type", "text");
        head.putArray("output");
        return head;
    }

    private static ObjectNode message(String id, String status, @Nullable String text, JsonNode logProbs) {
        ObjectNode message = NODES.objectNode()
                .put("id", "msg_" + id)
                .put("type", "message")
                .put("status", status)
                .put("role", "assistant");
        ArrayNode content = message.putArray("content");
        if (text != null) {
            content.add(part(text, logProbs));
        }
        return message;
    }

    private static ObjectNode part(String text, JsonNode logProbs) {
        ObjectNode part = NODES.objectNode().put("type", "output_text").put("text", text);
        part.putArray("annotations");
        part.set("logprobs", logProbs.isArray() ? logProbs : NODES.arrayNode());
        return part;
    }

    /** @param call of a chat completion */
    private static ObjectNode functionCall(JsonNode call, String status) {
        ObjectNode item = NODES.objectNode()
                .put("id", "fc_" + call.path("id").asText())
                .put("type", "function_call")
                .put("status", status);
        item.set("call_id", call.path("id"));
        item.set("name", call.at("/function/name"));
        item.set("arguments", call.at("/function/arguments"));
        return item;
    }

    /** @param chat makes the chat completion of played turns */
    StreamForm stream(Function<List<PlayedTurn>, ObjectNode> chat) {
        return new Stream(chat);
    }

    /** Numbered events of items that begin, grow and end, made from OpenAI chunks. */
    private final class Stream implements StreamForm {
        private final Function<List<PlayedTurn>, ObjectNode> chat;
        private final StringBuilder events = new StringBuilder();
        private final StringBuilder text = new StringBuilder();
        private final ArrayNode logProbs = NODES.arrayNode();
        private String id = "";
        private String model = "";
        private long createdSeconds;
        private int number;
        private int items;
        private boolean isTextOpen;

        Stream(Function<List<PlayedTurn>, ObjectNode> chat) {
            this.chat = chat;
        }

        @Override
        public String of(ObjectNode piece) {
            if (id.isEmpty()) {
                id = piece.path("id").asText();
                model = piece.path("model").asText();
                createdSeconds = piece.path("created").asLong();
                add("response.created", "response", head(id, createdSeconds, model, "in_progress"));
                add("response.in_progress", "response", head(id, createdSeconds, model, "in_progress"));
            }
            JsonNode choice = piece.path("choices").path(0);
            choice.path("logprobs").path("content").forEach(logProbs::add);
            String more = choice.path("delta").path("content").asText("");
            if (!more.isEmpty()) {
                openText();
                text.append(more);
                ObjectNode delta = ofPart("response.output_text.delta").put("delta", more);
                delta.putArray("logprobs");
                add(delta);
            }
            choice.path("delta").path("tool_calls").forEach(this::call);
            return taken();
        }

        private String taken() {
            String all = events.toString();
            events.setLength(0);
            return all;
        }

        private void openText() {
            if (!isTextOpen) {
                isTextOpen = true;
                addItem("response.output_item.added", message(id, "in_progress", null, logProbs));
                ObjectNode begin = ofPart("response.content_part.added");
                begin.set("part", part("", NODES.arrayNode()));
                add(begin);
            }
        }

        private void closeText(String status) {
            if (isTextOpen) {
                isTextOpen = false;
                ObjectNode whole = ofPart("response.output_text.done").put("text", text.toString());
                whole.set("logprobs", logProbs);
                add(whole);
                ObjectNode done = ofPart("response.content_part.done");
                done.set("part", part(text.toString(), logProbs));
                add(done);
                addItem("response.output_item.done", message(id, status, text.toString(), logProbs));
                items++;
            }
        }

        private void call(JsonNode call) {
            closeText("completed");
            ObjectNode item = functionCall(call, "completed");
            ObjectNode begun = item.deepCopy().put("status", "in_progress").put("arguments", "");
            addItem("response.output_item.added", begun);
            ObjectNode delta = ofItem("response.function_call_arguments.delta", item);
            delta.set("delta", item.get("arguments"));
            add(delta);
            ObjectNode whole = ofItem("response.function_call_arguments.done", item);
            whole.set("name", item.get("name"));
            whole.set("arguments", item.get("arguments"));
            add(whole);
            addItem("response.output_item.done", item);
            items++;
        }

        @Override
        public String end(List<PlayedTurn> turns) {
            ObjectNode answer = answer(turns.get(0), chat.apply(turns).put("id", id));
            if (items == 0) {
                openText(); // an empty answer is an item too
            }
            String status = answer.get("status").textValue();
            closeText(status);
            add("response." + status, "response", answer);
            return taken();
        }

        @Override
        public String failed(RefusedCallException refusal) {
            ObjectNode response = head(id, createdSeconds, model, "failed");
            response.putObject("error").put("code", refusal.type()).put("message", refusal.getMessage());
            add("response.failed", "response", response);
            return taken();
        }

        private ObjectNode ofPart(String type) {
            return event(type)
                    .put("item_id", "msg_" + id)
                    .put("output_index", items)
                    .put("content_index", 0);
        }

        private ObjectNode ofItem(String type, ObjectNode item) {
            ObjectNode event = event(type).put("output_index", items);
            event.set("item_id", item.get("id"));
            return event;
        }

        private void addItem(String type, ObjectNode item) {
            ObjectNode event = event(type).put("output_index", items);
            event.set("item", item);
            add(event);
        }

        private void add(String type, String name, ObjectNode value) {
            ObjectNode event = event(type);
            event.set(name, value);
            add(event);
        }

        private static ObjectNode event(String type) {
            return NODES.objectNode().put("type", type);
        }

        private void add(ObjectNode event) {
            StreamForm.add(events, event.put("sequence_number", number++));
        }
    }
}
