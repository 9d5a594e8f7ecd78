package dev.millrace.gateway;

import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.gateway.ToolFormat.ToolCall;
import dev.millrace.gateway.ToolFormat.WrittenText;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.SessionTurn;
import dev.millrace.schemas.packed.PackedInts;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/**
 * A turn as given to its caller, to recognise it in later prompts.
 *
 * @param content next to tool calls
 * @param written sampled text up to a stop token
 */
record GivenAnswer(String content, List<ToolCall> calls, String callPrefix, String written) {

    static GivenAnswer of(
            String sessionId, SessionTurn turn, Tokenizer tokenizer, List<Integer> stopTokens, ToolFormat format) {
        Optional<WrittenText> read =
                turn.getFinishReason() == FinishReason.TOOL_CALLS ? format.read(turn.getText()) : Optional.empty();
        return new GivenAnswer(
                read.map(WrittenText::content).orElse(turn.getText()),
                read.map(WrittenText::calls).orElse(List.of()),
                "call_" + sessionId + "_" + turn.getTurn() + "_",
                written(PackedInts.toArray(turn.getSampledTokens()), tokenizer, stopTokens));
    }

    /** Text without a final stop token. */
    static String written(int[] tokens, Tokenizer tokenizer, List<Integer> stopTokens) {
        boolean stopped = tokens.length > 0 && stopTokens.contains(tokens[tokens.length - 1]);
        return tokenizer.decode(stopped ? Arrays.copyOf(tokens, tokens.length - 1) : tokens);
    }

    /** True if the assistant message is this answer, unchanged. */
    boolean isSaidBy(Map<String, Object> message) {
        if (!(message.get("tool_calls") instanceof List<?> given)) {
            return calls.isEmpty() && content.equals(message.get("content"));
        }
        if (given.size() != calls.size() || !content.equals(Objects.requireNonNullElse(message.get("content"), ""))) {
            return false;
        }
        for (int i = 0; i < calls.size(); i++) {
            if (!(given.get(i) instanceof Map<?, ?> call)
                    || !(callPrefix + i).equals(call.get("id"))
                    || !(call.get("function") instanceof Map<?, ?> function)
                    || !calls.get(i).name().equals(function.get("name"))
                    || !calls.get(i).hasArguments(function.get("arguments"))) {
                return false;
            }
        }
        return true;
    }
}
