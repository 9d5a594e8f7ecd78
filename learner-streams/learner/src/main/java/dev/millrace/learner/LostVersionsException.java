package dev.millrace.learner;

import java.util.Optional;

/** The log has lost what a learner needs to begin: it waits until somebody has mended that. */
final class LostVersionsException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String alarm;
    private final Optional<String> remedy;

    /**
     * Creates an exception for a loss that may be repaired while the learner waits.
     *
     * @param alarm the name of the condition
     */
    LostVersionsException(String alarm, String message) {
        super(message);
        this.alarm = alarm;
        this.remedy = Optional.empty();
    }

    /**
     * Creates an exception for a loss with a command that always repairs it.
     *
     * @param alarm the name of the condition
     * @param remedy that command
     */
    LostVersionsException(String alarm, String message, String remedy) {
        super(message);
        this.alarm = alarm;
        this.remedy = Optional.of(remedy);
    }

    String alarm() {
        return alarm;
    }

    /** Returns the command that always repairs the loss; empty if it must be diagnosed first. */
    Optional<String> remedy() {
        return remedy;
    }
}
