package dev.millrace.api.environment;

import dev.millrace.api.tokenizer.Tokenizer;
import java.util.Objects;

/**
 * Something to be learnt: the prompts, and the environment that continues and verifies their answers.
 *
 * @param name by which it is configured
 * @param prompts a pure function of task seed and ordinal
 * @param environment of every prompt
 * @param tokenizer the vocabulary that prompts, environment and answers are written in
 * @param promptTokens longest prompt
 * @param responseTokens longest response that can still earn something, environment tokens included
 */
public record Task(
        String name,
        PromptDataset prompts,
        Environment environment,
        Tokenizer tokenizer,
        int promptTokens,
        int responseTokens) {

    public Task {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(prompts, "prompts");
        Objects.requireNonNull(environment, "environment");
        Objects.requireNonNull(tokenizer, "tokenizer");
        if (promptTokens < 1 || responseTokens < 1) {
            throw new IllegalArgumentException("task " + name + " needs prompts and responses of at least one token: "
                    + promptTokens + " and " + responseTokens);
        }
    }

    /** Positions that a prompt with its response takes in the engine. */
    public int capacityTokens() {
        return promptTokens + responseTokens;
    }
}
