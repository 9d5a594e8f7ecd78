package dev.millrace.generator.environment;

import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.PromptDataset;
import dev.millrace.api.environment.Task;
import dev.millrace.api.environment.TaskSettings;
import dev.millrace.generator.sampling.CounterBasedRandom;

/**
 * Task {@code guess}: find a number of {@code digits} digits in at most {@code turns} guesses.
 *
 * <p>The prompt is {@code BOS SEP} for every number: the secret is in the state alone, which the policy does not see.
 *
 * @param digits digits of the number, 1 to 4
 * @param turns most guesses, 1 to 32
 */
public record GuessPrompts(int digits, int turns) implements PromptDataset, TaskSettings {

    public GuessPrompts {
        if (digits < 1 || digits > GuessState.MAX_DIGITS) {
            throw new IllegalArgumentException(
                    "digits must be 1 to " + GuessState.MAX_DIGITS + " for the task guess: " + digits);
        }
        if (turns < 1 || turns > GuessState.MAX_TURNS) {
            throw new IllegalArgumentException(
                    "turns must be 1 to " + GuessState.MAX_TURNS + " for the task guess: " + turns);
        }
    }

    /** One digit in four guesses, which is what halving the range needs. */
    public static GuessPrompts defaults() {
        return new GuessPrompts(1, 4);
    }

    @Override
    public Task task() {
        return new Task("guess", this, new Guess(), Symbols.tokenizer(), 2, responseTokens());
    }

    @Override
    public Prompt prompt(long seed, long ordinal) {
        int numbers = (int) Math.pow(10, digits);
        int number = CounterBasedRandom.below(CounterBasedRandom.stream(seed, ordinal, 0), 0, numbers);
        int[] tokens = {Symbols.BEGIN, Symbols.SEPARATOR};
        return new Prompt(tokens, new GuessState(number, digits, turns).text());
    }

    /** Longest response: every guess with the answer to it. */
    public int responseTokens() {
        return turns * (digits + 1);
    }
}
