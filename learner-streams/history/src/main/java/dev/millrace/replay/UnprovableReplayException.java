package dev.millrace.replay;

/** Ends the replay of a task where what is recorded does not say how it went on; the message says what is missing. */
final class UnprovableReplayException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    UnprovableReplayException(String message) {
        super(message, null, false, false);
    }
}
