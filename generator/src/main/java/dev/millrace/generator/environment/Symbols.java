package dev.millrace.generator.environment;

import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.policy.tokenizer.SymbolTokenizer;
import java.util.List;

/**
 * The sixteen symbols of the built-in tasks. A token id is the symbol's position in the list.
 *
 * <p>All built-in tasks share it, so that one policy can be trained on one task and tried on another.
 */
public final class Symbols {
    /** First token of every prompt. */
    public static final int BEGIN = 0;

    /** Ends a response, in environments that let the policy end it. */
    public static final int END = 1;

    /** Between the question and the answer. */
    public static final int SEPARATOR = 2;

    /** Token of the digit 0; the others follow. */
    public static final int ZERO = 3;

    public static final int HIGHER = 13;

    public static final int LOWER = 14;

    public static final int FOUND = 15;

    private static final List<String> NAMES = List.of(
            "<bos>",
            "<eos>",
            "<sep>",
            "0",
            "1",
            "2",
            "3",
            "4",
            "5",
            "6",
            "7",
            "8",
            "9",
            "<higher>",
            "<lower>",
            "<found>");
    private static final Tokenizer TOKENIZER = new SymbolTokenizer(NAMES);

    private Symbols() {}

    /** The symbols' names, in token order. */
    public static List<String> names() {
        return NAMES;
    }

    /** The vocabulary that consists of exactly these symbols. */
    public static Tokenizer tokenizer() {
        return TOKENIZER;
    }

    /** Token of a digit 0 to 9. */
    public static int digit(int value) {
        if (value < 0 || value > 9) {
            throw new IllegalArgumentException("a digit is 0 to 9: " + value);
        }
        return ZERO + value;
    }

    /** The digit of a token, or -1 if it is no digit. */
    public static int digitOf(int token) {
        return token >= ZERO && token < ZERO + 10 ? token - ZERO : -1;
    }
}
