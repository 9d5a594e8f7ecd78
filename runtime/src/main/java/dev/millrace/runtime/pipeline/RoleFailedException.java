package dev.millrace.runtime.pipeline;

import org.jspecify.annotations.Nullable;

/** A role ended unexpectedly or did not stop in time. */
public final class RoleFailedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    RoleFailedException(String role, String what, @Nullable Throwable cause) {
        super("the " + role + " failed: " + what, cause);
    }
}
