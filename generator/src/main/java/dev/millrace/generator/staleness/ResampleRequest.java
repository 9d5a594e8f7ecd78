package dev.millrace.generator.staleness;

/**
 * A prompt that is to be released once more, because nothing could be learned from its samples.
 *
 * @param prompt which of the task's prompts
 * @param attempt how often it will have been released before, at least 1
 */
record ResampleRequest(long prompt, int attempt) {}
