package dev.millrace.api.tokenizer;

import java.util.List;

/** Text to token ids and back. Implementations are immutable and thread-safe. */
public interface Tokenizer {

    /** Ids are {@code 0 .. vocabSize-1}. */
    int vocabSize();

    /** @throws IllegalArgumentException naming the first place that no token covers */
    int[] encode(String text);

    /**
     * Returns the most UTF-16 characters that a text of this many tokens can have, so that a longer text is refused without encoding it.
     * {@link Integer#MAX_VALUE} if unknown.
     */
    default int mostCharacters(int tokens) {
        return Integer.MAX_VALUE;
    }

    /**
     * A conversation as the checkpoint was taught to read it, up to where the assistant's answer begins: its chat template decides, special
     * tokens and the first token included.
     *
     * @throws IllegalArgumentException if there is no template, it refuses the conversation, or it cannot be rendered
     */
    default int[] encode(List<ChatMessage> messages) {
        throw new IllegalArgumentException(
                "this tokenizer has no chat template, so messages cannot be rendered; write the"
                        + " text itself as \"prompt\"");
    }

    /**
     * The text that the checkpoint's chat template makes of a conversation, up to where the assistant's answer begins.
     *
     * @throws IllegalArgumentException as {@link #encode(List)}
     */
    default String render(Conversation conversation) {
        throw new IllegalArgumentException("this tokenizer has no chat template, so messages cannot be rendered");
    }

    /**
     * Of a text that has its special tokens in it by their names, as {@link #render} makes it: nothing is put around it.
     *
     * @throws IllegalArgumentException as {@link #encode(String)}
     */
    default int[] encodeRendered(String text) {
        return encode(text);
    }

    /** Lower-case hex sha-256 of all that decides how a conversation becomes text; empty where there is no chat template. */
    default String chatHash() {
        return "";
    }

    /**
     * What tokens stand for, with the names of those that are no text.
     *
     * @throws IllegalArgumentException if an id is outside the vocabulary
     */
    String decode(int[] tokens);

    /**
     * The text alone: tokens that are none, such as the end of a text, are left out.
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

    /** Lower-case hex sha-256 of all that decides the mapping; equal hashes map alike. Goes into records. */
    String hash();
}
