package org.example.lab;

import dev.millrace.api.tokenizer.Tokenizer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** A vocabulary of six: {@code ^} begins a prompt, {@code =} ends it, and four letters. */
final class Letters implements Tokenizer {
    private static final String SYMBOLS = "^=abcd";

    @Override
    public int vocabSize() {
        return SYMBOLS.length();
    }

    @Override
    public int[] encode(String text) {
        return text.chars()
                .map(c -> {
                    if (SYMBOLS.indexOf(c) < 0) {
                        throw new IllegalArgumentException("no token is '" + (char) c + "' of '" + text + "'");
                    }
                    return SYMBOLS.indexOf(c);
                })
                .toArray();
    }

    @Override
    public String decode(int[] tokens) {
        StringBuilder text = new StringBuilder();
        for (int token : tokens) {
            if (token < 0 || token >= SYMBOLS.length()) {
                throw new IllegalArgumentException("the vocabulary has no token " + token);
            }
            text.append(SYMBOLS.charAt(token));
        }
        return text.toString();
    }

    @Override
    public String hash() {
        try {
            MessageDigest sha = MessageDigest.getInstance("SHA-256");
            return HexFormat.of().formatHex(sha.digest(SYMBOLS.getBytes(StandardCharsets.UTF_8)));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java has SHA-256", e);
        }
    }
}
