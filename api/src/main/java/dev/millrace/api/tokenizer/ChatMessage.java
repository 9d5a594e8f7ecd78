package dev.millrace.api.tokenizer;

import java.util.Objects;

/**
 * What one party of a conversation said.
 *
 * @param role who, as the checkpoint's chat template names them: {@code system}, {@code user}, {@code assistant}
 * @param content what
 */
public record ChatMessage(String role, String content) {

    public ChatMessage {
        Objects.requireNonNull(content, "content");
        if (role.isEmpty()) {
            throw new IllegalArgumentException("a message needs a role, such as user");
        }
    }
}
