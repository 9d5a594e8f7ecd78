package dev.millrace.generator.environment.answer;

import dev.millrace.generator.draw.Draws;
import dev.millrace.generator.environment.Prompt;
import dev.millrace.generator.environment.PromptMaker;
import java.util.Arrays;

/**
 * Task {@code sort}: {@code BOS d1..dn SEP}, to be answered by the same digits in ascending order. Each position of the
 * answer depends on all of the question, so it takes several times the steps of {@code inc}.
 *
 * @param digits n, 1 to 64
 */
public record SortPrompts(int digits) implements PromptMaker {

    public SortPrompts {
        DigitQuestion.requireLength("sort", digits);
    }

    /** Four digits: learnt in a few hundred steps. */
    public static SortPrompts defaults() {
        return new SortPrompts(4);
    }

    @Override
    public Prompt prompt(long seed, long ordinal) {
        long stream = Draws.stream(seed, ordinal, 0);
        int[] question = new int[digits];
        for (int i = 0; i < digits; i++) {
            question[i] = Draws.below(stream, i, 10);
        }
        int[] answer = question.clone();
        Arrays.sort(answer);
        return DigitQuestion.prompt(question, answer);
    }
}
