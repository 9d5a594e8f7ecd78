package dev.millrace.api.environment;

/** Makes the prompts of a task. A pure function, so that a restarted run continues with the same prompts. */
@FunctionalInterface
public interface PromptDataset {

    /**
     * The prompt at a position of the run.
     *
     * @param seed of the task; another seed gives other prompts
     * @param ordinal position in the run, from 0
     */
    Prompt prompt(long seed, long ordinal);
}
