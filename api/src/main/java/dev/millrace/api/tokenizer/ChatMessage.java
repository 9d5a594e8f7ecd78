package dev.millrace.api.tokenizer;

import java.util.Objects;

/**
 * A message of a conversation.
 *
 * @param role role as named in the checkpoint's chat template: {@code system}, {@code user}, {@code assistant}
 * @param content text
 */
public record ChatMessage(String role, String content) {

    public ChatMessage {
        Objects.requireNonNull(content, "content");
        if (role.isEmpty()) {
            throw new IllegalArgumentException("a message needs a role, such as user");
        }
    }
}
