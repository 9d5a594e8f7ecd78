package dev.millrace.runtime.pipeline;

import org.jspecify.annotations.Nullable;

/** A role ended when it should not have, or did not end when it should have. */
public final class RoleFailedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    RoleFailedException(String role, String what, @Nullable Throwable cause) {
        super("the " + role + " failed: " + what, cause);
    }
}
