package dev.millrace.generator.environment.text;

import dev.millrace.api.environment.Transcript;
import dev.millrace.api.tokenizer.Tokenizer;
import java.util.List;

/** Ends a text at a stop token or a stop text, across token borders, special tokens included. Thread-safe. */
public final class StopRule {
    /** Tokens that one character may be made of, as bytes. */
    private static final int TOKENS_OF_A_CHARACTER = 4;

    private final int[] tokens;
    private final List<String> texts;
    private final int looksBack;
    private final Tokenizer tokenizer;

    public StopRule(int[] tokens, List<String> texts, Tokenizer tokenizer) {
        this.tokens = tokens.clone();
        this.texts = List.copyOf(texts);
        int longest = texts.stream().mapToInt(String::length).max().orElse(0);
        // in these a stop text that the newest one completes must lie; the first one may lose a space that it begins
        // with
        this.looksBack = longest * TOKENS_OF_A_CHARACTER + 2;
        this.tokenizer = tokenizer;
    }

    /** Whether it is over with its newest token. */
    public boolean endsAt(Transcript response) {
        return endsWith(response.token(response.length() - 1)) || !texts.isEmpty() && hasStopText(response);
    }

    public boolean endsWith(int token) {
        for (int stop : tokens) {
            if (token == stop) {
                return true;
            }
        }
        return false;
    }

    private boolean hasStopText(Transcript response) {
        int from = Math.max(0, response.length() - looksBack);
        int[] tail = new int[response.length() - from];
        for (int i = 0; i < tail.length; i++) {
            tail[i] = response.token(from + i);
        }
        String text = tokenizer.text(tail);
        String whole = tokenizer.decode(tail); // a stop text may be a special token, which is no text
        return texts.stream().anyMatch(stop -> text.contains(stop) || whole.contains(stop));
    }
}
