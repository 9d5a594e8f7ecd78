package dev.millrace.weights;

/**
 * Reaction of a role that follows the newest version to one that is missing on the log or does not match its manifest.
 */
public enum BrokenVersionPolicy {
    /**
     * The role continues with its current version, reports the broken link, and loads the next complete version: the
     * next anchor at the latest.
     */
    WAIT,
    /** The role stops with an error that names the link. */
    STOP
}
