package dev.millrace.api.environment;

import dev.millrace.api.tokenizer.Tokenizer;
import java.util.Objects;
import java.util.Optional;

/**
 * A task: its prompts, and the environment that continues and verifies their answers.
 *
 * @param name in the configuration
 * @param prompts a pure function of task seed and ordinal
 * @param environment of every prompt
 * @param tokenizer of prompts, environment and answers
 * @param promptTokens longest prompt
 * @param responseTokens longest response with a reward, environment tokens included
 * @param heldOut prompts for evaluation, never trained on, used in order and repeated; empty to evaluate on prompts of another seed
 */
public record Task(
        String name,
        PromptDataset prompts,
        Environment environment,
        Tokenizer tokenizer,
        int promptTokens,
        int responseTokens,
        Optional<PromptDataset> heldOut) {

    public Task {
        Objects.requireNonNull(heldOut, "heldOut");
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(prompts, "prompts");
        Objects.requireNonNull(environment, "environment");
        Objects.requireNonNull(tokenizer, "tokenizer");
        if (promptTokens < 1 || responseTokens < 1) {
            throw new IllegalArgumentException("task " + name + " needs prompts and responses of at least one token: "
                    + promptTokens + " and " + responseTokens);
        }
    }

    /** A task with random prompts, so that those of another seed are held out. */
    public Task(
            String name,
            PromptDataset prompts,
            Environment environment,
            Tokenizer tokenizer,
            int promptTokens,
            int responseTokens) {
        this(name, prompts, environment, tokenizer, promptTokens, responseTokens, Optional.empty());
    }

    /** Returns the positions of a prompt with its response in the engine. */
    public int capacityTokens() {
        return promptTokens + responseTokens;
    }
}
