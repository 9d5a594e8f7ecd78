package dev.millrace.replay;

/** Ends the replay of a task if the record does not show how it continued; the message names the missing part. */
final class UnprovableReplayException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    UnprovableReplayException(String message) {
        super(message, null, false, false);
    }
}
