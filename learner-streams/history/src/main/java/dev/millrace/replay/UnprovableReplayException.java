package dev.millrace.replay;

/** The record does not show how the task continued; the message names the missing part. */
final class UnprovableReplayException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    UnprovableReplayException(String message) {
        super(message, null, false, false);
    }
}
