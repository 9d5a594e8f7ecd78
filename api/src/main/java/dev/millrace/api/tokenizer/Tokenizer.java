package dev.millrace.api.tokenizer;

/** Text to token ids and back. Implementations are immutable and thread-safe. */
public interface Tokenizer {

    /** Ids are {@code 0 .. vocabSize-1}. */
    int vocabSize();

    /** @throws IllegalArgumentException naming the first place that no token covers */
    int[] encode(String text);

    /** @throws IllegalArgumentException if an id is outside the vocabulary */
    String decode(int[] tokens);

    /** Lower-case hex sha-256 of all that decides the mapping; equal hashes map alike. Goes into records. */
    String hash();
}
