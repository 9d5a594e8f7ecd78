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
 * @param repeated the client retries a call whose answer was lost
 */
record AgentCall(
        String model, Prompt prompt, int choices, Sampling sampling, Form form, String sha256, boolean repeated) {

    /** Exactly one is not null: the conversation of a chat, the text or the ids of a completion. */
    record Prompt(
            @Nullable Conversation conversation, @Nullable String text, int @Nullable [] ids) {}

    /**
     * What a call asks of sampling; the run's own where it is empty.
     *
     * @param stop texts that end the answer
     */
    record Sampling(
            OptionalInt maxTokens,
            OptionalDouble temperature,
            OptionalDouble topP,
            OptionalInt topK,
            OptionalDouble minP,
            OptionalLong seed,
            List<String> stop) {}

    /**
     * Form of the answer.
     *
     * @param endsWithUsage the stream's last piece has the usage
     */
    record Form(boolean stream, boolean endsWithUsage, boolean logProbs, boolean returnTokenIds) {}

    boolean isChat() {
        return prompt.conversation() != null;
    }

    boolean hasTools() {
        return prompt.conversation() != null && !prompt.conversation().tools().isEmpty();
    }

    /** Each field is used, ignored by name, or refused by name. */
    static AgentCall of(boolean chat, JsonNode body, String sha256, boolean repeated) {
        return new CallReader(body, chat).read(sha256, repeated);
    }
}
