package dev.millrace.gateway;

import dev.millrace.api.tokenizer.Tokenizer;
import java.util.Arrays;

/**
 * Splits sampled tokens into texts whose concatenation is the whole text. A token that ends inside a character has an
 * empty piece; the completing token has the character. Holds one answer's tokens; not thread-safe.
 */
final class TokenTexts {
    private static final char HALF = '\uFFFD';
    /** Tokens after which invalid bytes are given as they are. */
    private static final int MOST_HALF = 16;

    private final Tokenizer tokenizer;
    /** Tokens of the newest complete piece, and those after it. */
    private int[] window = new int[0];

    private int complete;

    TokenTexts(Tokenizer tokenizer) {
        this.tokenizer = tokenizer;
    }

    /** The last token may end inside a character. */
    String[] next(int[] tokens) {
        String[] texts = new String[tokens.length];
        for (int i = 0; i < tokens.length; i++) {
            texts[i] = next(tokens[i], false);
        }
        return texts;
    }

    /** For a complete answer. */
    static String[] of(int[] tokens, Tokenizer tokenizer) {
        TokenTexts texts = new TokenTexts(tokenizer);
        String[] pieces = new String[tokens.length];
        for (int i = 0; i < tokens.length; i++) {
            pieces[i] = texts.next(tokens[i], i == tokens.length - 1);
        }
        return pieces;
    }

    private String next(int token, boolean isLast) {
        window = Arrays.copyOf(window, window.length + 1);
        window[window.length - 1] = token;
        String before = tokenizer.decode(Arrays.copyOf(window, complete));
        String all = tokenizer.decode(window);
        boolean isHalf = !all.isEmpty() && all.charAt(all.length() - 1) == HALF && window.length - complete < MOST_HALF;
        if (isHalf && !isLast) {
            return "";
        }
        String piece =
                all.substring(Math.min(before.length(), all.length())); // shorter only where bytes are no character
        window = Arrays.copyOfRange(window, complete, window.length);
        complete = window.length;
        return piece;
    }
}
