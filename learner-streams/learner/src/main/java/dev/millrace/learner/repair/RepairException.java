package dev.millrace.learner.repair;

import org.jspecify.annotations.Nullable;

/** A way out cannot be gone; the message says why and what can be done instead. */
public final class RepairException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    RepairException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
