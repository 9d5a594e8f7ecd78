package dev.millrace.generator.environment;

import java.util.Objects;

/**
 * Something to be learnt: the prompts, and the environment that continues and verifies their answers.
 *
 * @param name by which it is configured
 * @param prompts a pure function of task seed and ordinal
 * @param environment of every prompt
 * @param promptTokens longest prompt
 * @param responseTokens longest response that can still earn something, environment tokens included
 */
public record Task(String name, PromptMaker prompts, Environment environment, int promptTokens, int responseTokens) {

    public Task {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(prompts, "prompts");
        Objects.requireNonNull(environment, "environment");
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
