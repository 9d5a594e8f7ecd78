package dev.millrace.learner;

/** The log has lost what a learner needs to begin: it waits until somebody has mended that. */
final class LostVersionsException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String alarm;

    /** @param alarm the name of the condition */
    LostVersionsException(String alarm, String message) {
        super(message);
        this.alarm = alarm;
    }

    String alarm() {
        return alarm;
    }
}
