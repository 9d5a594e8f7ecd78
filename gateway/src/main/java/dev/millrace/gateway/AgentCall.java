package dev.millrace.gateway;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.api.tokenizer.Conversation;
import java.util.List;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A validated call of {@code /chat/completions} or {@code /completions}.
 *
 * @param conversation of a chat; null of a completion
 * @param text prompt of a completion; null for ids or a chat
 * @param ids prompt of a completion; null for text or a chat
 * @param choices answers per prompt
 * @param maxTokens empty for the run's limit
 * @param endsWithUsage the stream's last piece has the usage
 * @param sha256 of the body
 * @param repeated the client retries a call whose answer was lost
 */
record AgentCall(
        String model,
        @Nullable Conversation conversation,
        @Nullable String text,
        int @Nullable [] ids,
        int choices,
        OptionalInt maxTokens,
        OptionalDouble temperature,
        OptionalDouble topP,
        OptionalInt topK,
        OptionalDouble minP,
        OptionalLong seed,
        List<String> stop,
        boolean stream,
        boolean endsWithUsage,
        boolean logProbs,
        boolean returnTokenIds,
        String sha256,
        boolean repeated) {

    boolean isChat() {
        return conversation != null;
    }

    boolean hasTools() {
        return conversation != null && !conversation.tools().isEmpty();
    }

    /** Each field is used, ignored by name, or refused by name. */
    static AgentCall of(boolean chat, JsonNode body, String sha256, boolean repeated) {
        return new CallReader(body, chat).read(sha256, repeated);
    }
}
