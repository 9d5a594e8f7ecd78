package dev.millrace.cli.role;

/** A role ended when it should not have, or did not end when it should have. */
public final class RoleFailure extends RuntimeException {
    private static final long serialVersionUID = 1L;

    RoleFailure(String role, String what, Throwable cause) {
        super("the " + role + " failed: " + what, cause);
    }
}
