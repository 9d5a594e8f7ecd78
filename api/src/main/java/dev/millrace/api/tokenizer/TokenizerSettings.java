package dev.millrace.api.tokenizer;

/**
 * A record of settings that a tokenizer is opened by; the door through which tokenizers come. {@code task.tokenizer} chooses one for the task
 * {@code text}.
 */
public interface TokenizerSettings {

    /**
     * Opens it. Asked where text becomes tokens or tokens text, and once before a run begins.
     *
     * @throws IllegalArgumentException if it cannot be opened; a sentence that says what and where
     */
    Tokenizer open();
}
