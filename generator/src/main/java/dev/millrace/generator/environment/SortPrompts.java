package dev.millrace.generator.environment;

import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.PromptDataset;
import dev.millrace.api.environment.Task;
import dev.millrace.api.environment.TaskSettings;
import dev.millrace.generator.sampling.CounterBasedRandom;
import java.util.Arrays;

/**
 * Task {@code sort}: {@code BOS d1..dn SEP}, to be answered by the same digits in ascending order. Each position of the
 * answer depends on all of the question, so it takes several times the steps of {@code inc}.
 *
 * @param digits n, 1 to 64
 */
public record SortPrompts(int digits) implements PromptDataset, TaskSettings {

    public SortPrompts {
        DigitQuestion.requireLength("sort", digits);
    }

    /** Four digits: learnt in a few hundred steps. */
    public static SortPrompts defaults() {
        return new SortPrompts(4);
    }

    @Override
    public Task task() {
        return new Task("sort", this, new FixedAnswer(), Symbols.tokenizer(), digits + 2, digits);
    }

    @Override
    public Prompt prompt(long seed, long ordinal) {
        long stream = CounterBasedRandom.stream(seed, ordinal, 0);
        int[] question = new int[digits];
        for (int i = 0; i < digits; i++) {
            question[i] = CounterBasedRandom.below(stream, i, 10);
        }
        int[] answer = question.clone();
        Arrays.sort(answer);
        return DigitQuestion.prompt(question, answer);
    }
}
