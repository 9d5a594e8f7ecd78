package dev.millrace.api.tokenizer;

import java.util.List;

/** Text to token ids and back. Implementations are immutable and thread-safe. */
public interface Tokenizer {

    /** Ids are {@code 0 .. vocabSize-1}. */
    int vocabSize();

    /** @throws IllegalArgumentException naming the first position that no token covers */
    int[] encode(String text);

    /**
     * Returns the most UTF-16 characters that a text of this many tokens can have, so that a longer text is refused without encoding it.
     * {@link Integer#MAX_VALUE} if unknown.
     */
    default int mostCharacters(int tokens) {
        return Integer.MAX_VALUE;
    }

    /**
     * Encodes a conversation with the checkpoint's chat template, up to the start of the assistant's answer, including
     * special tokens and the first token.
     *
     * @throws IllegalArgumentException if there is no template, it refuses the conversation, or it cannot be rendered
     */
    default int[] encode(List<ChatMessage> messages) {
        throw new IllegalArgumentException(
                "this tokenizer has no chat template, so messages cannot be rendered; write the"
                        + " text itself as \"prompt\"");
    }

    /**
     * Renders a conversation with the checkpoint's chat template, up to the start of the assistant's answer.
     *
     * @throws IllegalArgumentException as {@link #encode(List)}
     */
    default String render(Conversation conversation) {
        throw new IllegalArgumentException("this tokenizer has no chat template, so messages cannot be rendered");
    }

    /**
     * Encodes a text that contains special tokens by name, such as the output of {@link #render}; adds none.
     *
     * @throws IllegalArgumentException as {@link #encode(String)}
     */
    default int[] encodeRendered(String text) {
        return encode(text);
    }

    /**
     * Lower-case hex sha-256 of everything that affects the rendering of conversations; empty without a chat template.
     */
    default String chatHash() {
        return "";
    }

    /**
     * Decodes tokens, with the names of special tokens.
     *
     * @throws IllegalArgumentException if an id is outside the vocabulary
     */
    String decode(int[] tokens);

    /**
     * Decodes tokens without special tokens, such as the end of a text.
     *
     * @throws IllegalArgumentException if an id is outside the vocabulary
     */
    default String text(int[] tokens) {
        return decode(tokens);
    }

    /** Stop tokens of the checkpoint; empty if it names none. */
    default List<Integer> stopTokens() {
        return List.of();
    }

    /** Lower-case hex sha-256 of everything that affects the mapping; equal hashes map alike. Stored in records. */
    String hash();
}
