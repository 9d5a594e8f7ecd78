package dev.millrace.generator.environment;

import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.PromptDataset;
import dev.millrace.api.environment.Task;
import dev.millrace.api.environment.TaskSettings;
import dev.millrace.generator.sampling.CounterBasedRandom;

/**
 * Task {@code inc}: {@code BOS d1..dn SEP}, to be answered by each digit plus one, modulo ten.
 *
 * @param digits n, 1 to 64
 */
public record IncPrompts(int digits) implements PromptDataset, TaskSettings {

    public IncPrompts {
        DigitQuestion.requireLength("inc", digits);
    }

    /** Five digits: learnt in under a hundred steps. */
    public static IncPrompts defaults() {
        return new IncPrompts(5);
    }

    @Override
    public Task task() {
        return new Task("inc", this, new FixedAnswer(), Symbols.tokenizer(), digits + 2, digits);
    }

    @Override
    public Prompt prompt(long seed, long ordinal) {
        long stream = CounterBasedRandom.stream(seed, ordinal, 0);
        int[] question = new int[digits];
        int[] answer = new int[digits];
        for (int i = 0; i < digits; i++) {
            question[i] = CounterBasedRandom.below(stream, i, 10);
            answer[i] = (question[i] + 1) % 10;
        }
        return DigitQuestion.prompt(question, answer);
    }
}
