package dev.millrace.generator.environment;

import dev.millrace.api.environment.Prompt;

/** The form that the single-turn tasks share: {@code BOS d1..dn SEP} with an answer of digits. */
final class DigitQuestion {
    private static final int MAX_DIGITS = 64;

    private DigitQuestion() {}

    static Prompt prompt(int[] question, int[] answer) {
        int[] tokens = new int[question.length + 2];
        tokens[0] = Symbols.BEGIN;
        for (int i = 0; i < question.length; i++) {
            tokens[i + 1] = Symbols.digit(question[i]);
        }
        tokens[question.length + 1] = Symbols.SEPARATOR;
        return new Prompt(tokens, FixedAnswer.state(answer));
    }

    static void requireLength(String task, int digits) {
        if (digits < 1 || digits > MAX_DIGITS) {
            throw new IllegalArgumentException(
                    "digits must be 1 to " + MAX_DIGITS + " for the task " + task + ": " + digits);
        }
    }
}
