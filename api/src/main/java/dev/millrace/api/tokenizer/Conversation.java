package dev.millrace.api.tokenizer;

import java.util.List;
import java.util.Map;

/**
 * A conversation with all inputs of a chat template.
 *
 * @param messages in order, each with a {@code role} and mostly a {@code content}; optionally further fields that a
 * template reads, such as {@code tool_calls} or {@code tool_call_id}. Values are texts, numbers, booleans, lists and
 * maps of these
 * @param tools tool descriptions; empty for none
 */
public record Conversation(List<Map<String, Object>> messages, List<Map<String, Object>> tools) {

    public Conversation {
        messages = List.copyOf(messages);
        tools = List.copyOf(tools);
    }
}
