package dev.millrace.api.tokenizer;

import java.util.List;
import java.util.Map;

/**
 * A conversation with all that a chat template may look at.
 *
 * @param messages in order, each with a {@code role} and mostly a {@code content}; with more where a template knows it, such as
 *     {@code tool_calls} or {@code tool_call_id}. Values are texts, numbers, truth values, lists and maps of these
 * @param tools that the assistant may call, each as its maker describes it; empty where there are none
 */
public record Conversation(List<Map<String, Object>> messages, List<Map<String, Object>> tools) {

    public Conversation {
        messages = List.copyOf(messages);
        tools = List.copyOf(tools);
    }
}
