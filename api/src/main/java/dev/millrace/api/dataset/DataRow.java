package dev.millrace.api.dataset;

import dev.millrace.api.tokenizer.ChatMessage;
import java.util.List;
import java.util.Objects;

/**
 * One row of data: a text that the policy continues, or a conversation that it answers.
 *
 * @param prompt text of the prompt; empty where there are messages
 * @param messages of the conversation, which the checkpoint's chat template renders; empty where there is a text
 * @param state other fields of the row, as a JSON object such as {@code {"answer":"42"}}; passed with the prompt to
 * rewards
 */
public record DataRow(String prompt, List<ChatMessage> messages, String state) {

    public DataRow {
        Objects.requireNonNull(state, "state");
        messages = List.copyOf(messages);
        if (prompt.isEmpty() == messages.isEmpty()) {
            throw new IllegalArgumentException(
                    prompt.isEmpty()
                            ? "a prompt needs at least one character"
                            : "a row has a text or messages, not both");
        }
    }

    /** A text to continue. */
    public DataRow(String prompt, String state) {
        this(prompt, List.of(), state);
    }

    /** A conversation to answer. */
    public DataRow(List<ChatMessage> messages, String state) {
        this("", messages, state);
    }
}
