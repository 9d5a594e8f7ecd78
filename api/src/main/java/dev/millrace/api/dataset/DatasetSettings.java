package dev.millrace.api.dataset;

/**
 * A record of settings that a dataset is read by; the door through which datasets come. {@code data: {file: prompts.jsonl}} or
 * {@code data: {kind: NAME, ...}} chooses one for the task {@code text}.
 */
public interface DatasetSettings {

    /**
     * Reads it. Asked where prompts are released, and once before a run begins.
     *
     * @throws IllegalArgumentException if it cannot be read; a sentence that says what and where
     */
    Dataset open();
}
