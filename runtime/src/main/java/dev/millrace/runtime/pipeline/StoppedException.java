package dev.millrace.runtime.pipeline;

import org.jspecify.annotations.Nullable;

/** A stop was requested during start-up. */
public final class StoppedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    StoppedException(@Nullable Throwable cause) {
        super("stopped before it started", cause);
    }
}
