package dev.millrace.gateway;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.api.tokenizer.Conversation;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

final class CallReader {
    private static final int MOST_CHOICES = 64;
    private static final int MOST_STOPS = 16;
    private static final ObjectMapper JSON = new ObjectMapper();
    static final Pattern HALF_CHARACTER = Pattern.compile("\\p{Cs}");
    private static final TypeReference<Map<String, Object>> OBJECT = new TypeReference<>() {};

    private static final Set<String> COMMON = Set.of(
            "model",
            "n",
            "max_tokens",
            "temperature",
            "top_p",
            "top_k",
            "min_p",
            "seed",
            "stop",
            "stream",
            "stream_options",
            "return_token_ids",
            "logprobs");
    private static final Set<String> CHAT = Set.of("messages", "tools", "tool_choice", "max_completion_tokens");
    /** Without effect on sampling. */
    private static final Set<String> ASIDE = Set.of(
            "user",
            "metadata",
            "store",
            "service_tier",
            "safety_identifier",
            "prompt_cache_key",
            "parallel_tool_calls");
    /** Known fields that are accepted only with these values. */
    private static final Map<String, Set<String>> HARMLESS = Map.of(
            "presence_penalty", Set.of("0", "0.0"),
            "frequency_penalty", Set.of("0", "0.0"),
            "logit_bias", Set.of("{}"),
            "top_logprobs", Set.of("0"),
            "echo", Set.of("false"),
            "best_of", Set.of("1"),
            "suffix", Set.of("\"\""),
            "response_format", Set.of("{\"type\":\"text\"}"),
            "functions", Set.of("[]"));

    private static final Set<String> PARTS = Set.of("text", "refusal");

    private final JsonNode body;
    private final boolean chat;

    CallReader(JsonNode body, boolean chat) {
        this.body = body;
        this.chat = chat;
    }

    AgentCall read(String sha256, boolean repeated) {
        if (!body.isObject()) {
            throw RefusedCallException.invalid(null, "the body must be a JSON object");
        }
        requireWholeCharacters(body, "the body");
        for (Iterator<String> names = body.fieldNames(); names.hasNext(); ) {
            requireKnown(names.next());
        }
        JsonNode logProbs = body.path("logprobs");
        return new AgentCall(
                body.path("model").asText(""),
                new AgentCall.Prompt(
                        chat ? conversation() : null,
                        chat || !body.path("prompt").isTextual()
                                ? null
                                : body.get("prompt").textValue(),
                        chat || body.path("prompt").isTextual() ? null : promptIds()),
                integer("n", 1, MOST_CHOICES).orElse(1),
                new AgentCall.Sampling(
                        maxTokens(),
                        number("temperature"),
                        number("top_p"),
                        integer("top_k", 0, Integer.MAX_VALUE),
                        number("min_p"),
                        seed(),
                        stop()),
                new AgentCall.Form(
                        truth("stream"),
                        endsWithUsage(),
                        chat ? truth("logprobs") : isGiven(logProbs) && completionLogProbs(logProbs),
                        truth("return_token_ids")),
                sha256,
                repeated);
    }

    static boolean isGiven(JsonNode value) {
        return !value.isMissingNode() && !value.isNull();
    }

    private void requireKnown(String name) {
        JsonNode value = body.get(name);
        boolean isKnown = COMMON.contains(name)
                || ASIDE.contains(name)
                || (chat ? CHAT.contains(name) : name.equals("prompt"))
                || !isGiven(value)
                || HARMLESS.getOrDefault(name, Set.of()).contains(value.toString());
        if (!isKnown) {
            throw RefusedCallException.unsupported(
                    name, name + " is not supported: " + shown(value) + "; leave it out");
        }
    }

    private static void requireWholeCharacters(JsonNode value, String place) {
        if (HALF_CHARACTER.matcher(value.toString()).find()) {
            throw RefusedCallException.invalid(
                    null, place + " has an unpaired surrogate (\\ud800 to \\udfff); fix the text");
        }
    }

    static String shown(JsonNode value) {
        String text = value.toString();
        return text.length() <= 80 ? text : text.substring(0, 80) + "...";
    }

    private Conversation conversation() {
        JsonNode given = body.path("messages");
        if (!given.isArray() || given.isEmpty()) {
            throw RefusedCallException.invalid("messages", "messages must be a list with at least one message");
        }
        List<Map<String, Object>> messages = new ArrayList<>();
        for (int i = 0; i < given.size(); i++) {
            messages.add(message(given.get(i), "messages[" + i + "]"));
        }
        return new Conversation(messages, tools());
    }

    private Map<String, Object> message(JsonNode given, String place) {
        if (!given.isObject() || !given.path("role").isTextual()) {
            throw RefusedCallException.invalid(place, place + " must be an object with a role");
        }
        Map<String, Object> message = new LinkedHashMap<>(JSON.convertValue(given, OBJECT));
        JsonNode content = given.path("content");
        message.put("content", isGiven(content) ? text(content, place + ".content", PARTS) : "");
        List<Map<String, Object>> calls = toolCalls(given.path("tool_calls"), place + ".tool_calls");
        message.put("tool_calls", calls.isEmpty() ? null : calls);
        message.values().removeIf(Objects::isNull);
        return message;
    }

    /** A text, or parts that are all of these types and have texts. */
    static String text(JsonNode content, String place, Set<String> types) {
        if (content.isTextual()) {
            return content.textValue();
        }
        if (!content.isArray()) {
            throw RefusedCallException.invalid(place, place + " must be a text or a list of parts: " + shown(content));
        }
        StringBuilder text = new StringBuilder();
        for (JsonNode part : content) {
            String type = part.path("type").asText();
            if (!types.contains(type)) {
                throw RefusedCallException.unsupported(
                        place, place + " has a part of the type '" + type + "', and the policy reads only text");
            }
            JsonNode said = part.path(type.equals("refusal") ? type : "text");
            if (!said.isTextual()) {
                throw RefusedCallException.invalid(place, place + " has a part without a text: " + shown(part));
            }
            text.append(said.textValue());
        }
        return text.toString();
    }

    /** Arguments are text on the wire but objects in templates. */
    private static List<Map<String, Object>> toolCalls(JsonNode calls, String place) {
        List<Map<String, Object>> read = new ArrayList<>();
        if (isGiven(calls) && !calls.isArray()) {
            throw RefusedCallException.invalid(place, place + " must be a list: " + shown(calls));
        }
        for (JsonNode call : calls) {
            if (!call.path("function").path("name").isTextual()) {
                throw RefusedCallException.invalid(
                        place, place + " has a call without a function that has a name: " + shown(call));
            }
            Map<String, Object> copy = new LinkedHashMap<>(JSON.convertValue(call, OBJECT));
            Map<String, Object> function = new LinkedHashMap<>(JSON.convertValue(call.path("function"), OBJECT));
            try {
                JsonNode arguments = ToolFormat.WHOLE.readTree(
                        call.path("function").path("arguments").asText("{}"));
                requireWholeCharacters(arguments, place);
                if (arguments.isObject()) {
                    function.put("arguments", JSON.convertValue(arguments, OBJECT));
                }
            } catch (JsonProcessingException e) {
                throw RefusedCallException.invalid(
                        place, place + " has arguments that are no JSON: " + e.getOriginalMessage());
            }
            copy.put("function", function);
            read.add(copy);
        }
        return read;
    }

    private List<Map<String, Object>> tools() {
        JsonNode choice = body.path("tool_choice");
        JsonNode tools = body.path("tools");
        if (isGiven(choice)
                && !choice.asText().equals("auto")
                && !choice.asText().equals("none")) {
            throw RefusedCallException.unsupported(
                    "tool_choice",
                    "tool_choice must be auto or none, since the policy cannot be forced to call a tool: "
                            + shown(choice));
        }
        List<Map<String, Object>> read = new ArrayList<>();
        if (isGiven(tools) && !tools.isArray()) {
            throw RefusedCallException.invalid("tools", "tools must be a list of objects: " + shown(tools));
        }
        for (JsonNode tool : choice.asText().equals("none") ? List.<JsonNode>of() : tools) {
            if (!tool.isObject()) {
                throw RefusedCallException.invalid("tools", "tools must be a list of objects: " + shown(tool));
            }
            read.add(JSON.convertValue(tool, OBJECT));
        }
        return read;
    }

    private int[] promptIds() {
        JsonNode prompt = body.path("prompt");
        if (prompt.isArray() && prompt.size() == 1 && prompt.get(0).isArray()) {
            prompt = prompt.get(0);
        }
        if (!prompt.isArray() || prompt.isEmpty()) {
            throw RefusedCallException.invalid("prompt", "prompt must be one text, or one list of token ids");
        }
        int[] ids = new int[prompt.size()];
        for (int i = 0; i < ids.length; i++) {
            if (!prompt.get(i).canConvertToInt() || !prompt.get(i).isIntegralNumber()) {
                throw RefusedCallException.invalid(
                        "prompt",
                        "prompt must be one text, or one list of token ids: " + shown(prompt.get(i)) + " at " + i);
            }
            ids[i] = prompt.get(i).intValue();
        }
        return ids;
    }

    private OptionalInt maxTokens() {
        OptionalInt completion = integer("max_completion_tokens", 1, Integer.MAX_VALUE);
        return completion.isPresent() ? completion : integer("max_tokens", 1, Integer.MAX_VALUE);
    }

    private OptionalInt integer(String name, int least, int most) {
        JsonNode value = body.path(name);
        if (!isGiven(value)) {
            return OptionalInt.empty();
        }
        if (!value.isIntegralNumber()
                || !value.canConvertToInt()
                || value.intValue() < least
                || value.intValue() > most) {
            throw RefusedCallException.invalid(
                    name, name + " must be a whole number from " + least + " to " + most + ": " + shown(value));
        }
        return OptionalInt.of(value.intValue());
    }

    private OptionalDouble number(String name) {
        JsonNode value = body.path(name);
        if (!isGiven(value)) {
            return OptionalDouble.empty();
        }
        if (!value.isNumber() || !Double.isFinite(value.doubleValue())) {
            throw RefusedCallException.invalid(name, name + " must be a number: " + shown(value));
        }
        return OptionalDouble.of(value.doubleValue());
    }

    private OptionalLong seed() {
        JsonNode value = body.path("seed");
        if (!isGiven(value)) {
            return OptionalLong.empty();
        }
        if (!value.isIntegralNumber() || !value.canConvertToLong()) {
            throw RefusedCallException.invalid("seed", "seed must be a whole number: " + shown(value));
        }
        return OptionalLong.of(value.longValue());
    }

    private boolean endsWithUsage() {
        JsonNode options = body.path("stream_options");
        JsonNode usage = options.path("include_usage");
        if (isGiven(options) && !options.isObject() || isGiven(usage) && !usage.isBoolean()) {
            throw RefusedCallException.invalid(
                    "stream_options",
                    "stream_options must be an object whose include_usage is true or false: " + shown(options));
        }
        return usage.asBoolean(false);
    }

    private boolean truth(String name) {
        JsonNode value = body.path(name);
        if (isGiven(value) && !value.isBoolean()) {
            throw RefusedCallException.invalid(name, name + " must be true or false: " + shown(value));
        }
        return value.asBoolean(false);
    }

    /** Only the sampled token's are supported. */
    private static boolean completionLogProbs(JsonNode value) {
        if (!value.isIntegralNumber() || value.intValue() != 0) {
            throw RefusedCallException.unsupported(
                    "logprobs", "logprobs must be 0, the sampled token's log-prob only: " + shown(value));
        }
        return true;
    }

    private List<String> stop() {
        JsonNode value = body.path("stop");
        if (!isGiven(value)) {
            return List.of();
        }
        List<String> texts = new ArrayList<>();
        (value.isArray() ? value : JSON.createArrayNode().add(value)).forEach(each -> texts.add(stopText(each)));
        if (texts.size() > MOST_STOPS) {
            throw RefusedCallException.invalid(
                    "stop", "stop must be at most " + MOST_STOPS + " texts: " + texts.size());
        }
        return texts;
    }

    private static String stopText(@Nullable JsonNode value) {
        if (value == null || !value.isTextual() || value.textValue().isEmpty()) {
            throw RefusedCallException.invalid("stop", "stop must be a text or a list of texts, none empty: " + value);
        }
        return value.textValue();
    }
}
