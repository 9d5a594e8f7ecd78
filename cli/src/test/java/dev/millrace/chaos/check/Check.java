package dev.millrace.chaos.check;

/**
 * A promise that was looked at when the faults were over.
 *
 * @param promise in a few words
 * @param isHeld whether it was kept
 * @param seen the figures, in a sentence
 */
public record Check(String promise, boolean isHeld, String seen) {}
