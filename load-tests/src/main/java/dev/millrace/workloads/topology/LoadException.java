package dev.millrace.workloads.topology;

import java.util.Objects;
import java.util.concurrent.ExecutionException;

/** A load test cannot continue; the message is for the user. */
public final class LoadException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public LoadException(String message) {
        super(message);
    }

    public LoadException(String message, Throwable cause) {
        super(message, cause);
    }

    public static LoadException of(String what, ExecutionException failure) {
        Throwable cause = Objects.requireNonNullElse(failure.getCause(), failure);
        return new LoadException(what + ": " + cause.getMessage(), cause);
    }
}
