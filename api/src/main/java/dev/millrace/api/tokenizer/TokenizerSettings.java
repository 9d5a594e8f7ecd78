package dev.millrace.api.tokenizer;

/**
 * Settings of a tokenizer. Extension point. {@code task.tokenizer} chooses one for the task
 * {@code text}.
 */
public interface TokenizerSettings {

    /**
     * Opens the tokenizer. Called where text is encoded or decoded, and once before a run begins.
     *
     * @throws IllegalArgumentException if it cannot be opened; with a message that says what and where
     */
    Tokenizer open();
}
