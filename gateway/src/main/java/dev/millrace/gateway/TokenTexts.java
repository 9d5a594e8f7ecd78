package dev.millrace.gateway;

import dev.millrace.api.tokenizer.Tokenizer;
import java.util.Arrays;

/**
 * Splits the text of sampled tokens into one piece per token, so that the pieces joined are the text. A token decoded alone may lose a
 * space or be a part of a character; the piece of such a part is empty, and the token that completes the character has all of it.
 *
 * <p>Holds the tokens of one answer; not thread-safe.
 */
final class TokenTexts {
    private static final char HALF = '\uFFFD';
    /** Bytes that are no character are given as they are after so many tokens. */
    private static final int MOST_HALF = 16;

    private final Tokenizer tokenizer;
    /** The tokens of the newest complete piece, and those behind it. */
    private int[] window = new int[0];

    private int complete;

    TokenTexts(Tokenizer tokenizer) {
        this.tokenizer = tokenizer;
    }

    /** Pieces of tokens, of which the last one may be in the middle of a character that later tokens complete. */
    String[] next(int[] tokens) {
        String[] texts = new String[tokens.length];
        for (int i = 0; i < tokens.length; i++) {
            texts[i] = next(tokens[i], false);
        }
        return texts;
    }

    /** Pieces of tokens behind which none comes. */
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
