package dev.millrace.policy.session;

/** A single sequence exceeds the memory limit of a pass. */
public final class PassMemoryException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    PassMemoryException(int tokens, long needed, long bound) {
        super("one sequence of " + tokens + " tokens takes " + (needed >> 20)
                + " MB on its way forward and back, more than the " + (bound >> 20) + " MB that a pass may take");
    }
}
