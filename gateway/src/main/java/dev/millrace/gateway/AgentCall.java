package dev.millrace.gateway;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.api.tokenizer.Conversation;
import java.util.List;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A call of {@code /chat/completions} or {@code /completions}, read and checked: whatever it asks for is done.
 *
 * @param conversation of a chat; null of a completion
 * @param text prompt of a completion; null where it is token ids, or a chat
 * @param ids prompt of a completion; null where it is a text, or a chat
 * @param choices answers to one prompt
 * @param maxTokens empty for as many as the run allows
 * @param logProbs whether the answer has the log-prob of each token
 * @param returnTokenIds whether it has token ids
 * @param endsWithUsage whether a stream's last piece has the usage
 * @param sha256 of the body
 * @param repeated whether the client says that it repeats a call whose answer it did not get
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

    /** Reads the fields of a body, each of which is understood, left aside by name, or refused by name. */
    static AgentCall of(boolean chat, JsonNode body, String sha256, boolean repeated) {
        return new CallReader(body, chat).read(sha256, repeated);
    }
}
