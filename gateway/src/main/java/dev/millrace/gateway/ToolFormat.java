package dev.millrace.gateway;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import dev.millrace.api.tokenizer.Conversation;
import dev.millrace.api.tokenizer.Tokenizer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

enum ToolFormat {
    /** {@code <tool_call>{"name": ..., "arguments": {...}}</tool_call>} (Hermes, Qwen); any number. */
    HERMES("<tool_call>") {
        @Override
        Optional<WrittenText> read(String text) {
            int first = text.indexOf(OPEN);
            List<ToolCall> calls = new ArrayList<>();
            int at = first;
            while (at >= 0) {
                int end = text.indexOf(CLOSE, at);
                Optional<ToolCall> call = end < 0
                        ? Optional.empty()
                        : ToolCall.parse(text.substring(at + OPEN.length(), end), "arguments");
                if (call.isEmpty() || !text.substring(afterLast(text, at), at).isBlank()) {
                    return Optional.empty();
                }
                calls.add(call.get());
                at = text.indexOf(OPEN, end);
                if (at < 0 && !text.substring(end + CLOSE.length()).isBlank()) {
                    return Optional.empty(); // text after the calls would be lost
                }
            }
            return calls.isEmpty()
                    ? Optional.empty()
                    : Optional.of(
                            new WrittenText(text.substring(0, first).isBlank() ? "" : text.substring(0, first), calls));
        }

        private static int afterLast(String text, int at) {
            int close = text.lastIndexOf(CLOSE, at);
            return close < 0 ? at : close + CLOSE.length();
        }
    },
    /** The whole answer is {@code {"name": ..., "parameters": {...}}} (Llama 3). */
    LLAMA3("{") {
        @Override
        Optional<WrittenText> read(String text) {
            return ToolCall.parse(text, "parameters").map(call -> new WrittenText("", List.of(call)));
        }
    },
    /** Unknown: calls stay text. */
    NONE("") {
        @Override
        Optional<WrittenText> read(String text) {
            return Optional.empty();
        }
    };

    private static final String OPEN = "<tool_call>";
    private static final String CLOSE = "</tool_call>";
    private static final String PROBE = "millrace_probe";
    private static final ObjectMapper JSON = new ObjectMapper();
    /** Rejects trailing text, and keeps the digits of numbers. */
    static final ObjectReader WHOLE = JSON.reader()
            .with(DeserializationFeature.FAIL_ON_TRAILING_TOKENS, DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .without(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES);

    private final String beginning;

    ToolFormat(String beginning) {
        this.beginning = beginning;
    }

    record ToolCall(String name, String arguments) {
        boolean hasArguments(@Nullable Object given) {
            try {
                return JSON.readTree(arguments).equals(JSON.readTree(JSON.writeValueAsString(given)));
            } catch (JsonProcessingException e) {
                throw new IllegalStateException("arguments that were read as JSON are none: " + arguments, e);
            }
        }

        static Optional<ToolCall> parse(String text, String argumentsKey) {
            try {
                JsonNode call = WHOLE.readTree(text.strip());
                JsonNode arguments = call == null ? null : call.get(argumentsKey);
                return call != null
                                && call.path("name").isTextual()
                                && !call.get("name").textValue().isEmpty()
                                && arguments != null
                                && arguments.isObject()
                                && !CallReader.HALF_CHARACTER
                                        .matcher(call.toString())
                                        .find()
                        ? Optional.of(new ToolCall(call.get("name").textValue(), JSON.writeValueAsString(arguments)))
                        : Optional.empty();
            } catch (JsonProcessingException e) {
                return Optional.empty(); // it only looks like one
            }
        }
    }

    /** Text next to the calls. */
    record WrittenText(String content, List<ToolCall> calls) {}

    /** Empty without a well-formed call; the answer is then text. */
    abstract Optional<WrittenText> read(String text);

    /** Start of a call; empty if unknown. */
    String beginning() {
        return beginning;
    }

    static ToolFormat of(Tokenizer tokenizer) {
        String text;
        try {
            text = tokenizer.render(new Conversation(
                    List.of(
                            Map.of("role", "user", "content", "a"),
                            Map.of(
                                    "role",
                                    "assistant",
                                    "content",
                                    "",
                                    "tool_calls",
                                    List.of(Map.of(
                                            "id",
                                            "call_000000000",
                                            "type",
                                            "function",
                                            "function",
                                            Map.of("name", PROBE, "arguments", Map.of("a", 1))))),
                            Map.of("role", "tool", "tool_call_id", "call_000000000", "content", "b")),
                    List.of()));
        } catch (IllegalArgumentException e) {
            return NONE; // it has no template, or one without tools
        }
        if (!text.contains(PROBE)) {
            return NONE;
        }
        return text.contains(OPEN) ? HERMES : text.contains("\"parameters\"") ? LLAMA3 : NONE;
    }
}
