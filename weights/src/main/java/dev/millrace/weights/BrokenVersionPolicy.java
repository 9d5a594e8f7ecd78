package dev.millrace.weights;

/** What a role does that follows the newest version when one is missing on the log or not what its manifest says. */
public enum BrokenVersionPolicy {
    /**
     * It goes on with the version it has, says which link is broken, and takes up the next version that can be put
     * together: the next anchor at the latest.
     */
    WAIT,
    /** It stops with the sentence that names the link. */
    STOP
}
