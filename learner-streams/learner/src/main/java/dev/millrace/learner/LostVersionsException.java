package dev.millrace.learner;

import java.util.Optional;

/** The log has lost what a learner needs to begin: it waits until somebody has mended that. */
final class LostVersionsException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String alarm;
    private final Optional<String> remedy;

    /**
     * Where it may be mended while the learner waits.
     *
     * @param alarm the name of the condition
     */
    LostVersionsException(String alarm, String message) {
        super(message);
        this.alarm = alarm;
        this.remedy = Optional.empty();
    }

    /**
     * Where it is known what goes on in any case.
     *
     * @param alarm the name of the condition
     * @param remedy the command that does
     */
    LostVersionsException(String alarm, String message, String remedy) {
        super(message);
        this.alarm = alarm;
        this.remedy = Optional.of(remedy);
    }

    String alarm() {
        return alarm;
    }

    /** What goes on in any case; empty where that is to be found out. */
    Optional<String> remedy() {
        return remedy;
    }
}
