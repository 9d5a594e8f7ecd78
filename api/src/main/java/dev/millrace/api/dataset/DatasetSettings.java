package dev.millrace.api.dataset;

/**
 * Settings of a dataset. Extension point. {@code data: {file: prompts.jsonl}} or
 * {@code data: {kind: NAME, ...}} chooses one for the task {@code text}.
 */
public interface DatasetSettings {

    /**
     * Reads the dataset. Called where prompts are released, and once before a run begins.
     *
     * @throws IllegalArgumentException if it cannot be read; with a message that says what and where
     */
    Dataset open();
}
