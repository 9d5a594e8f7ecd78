package dev.millrace.cli;

/** A command cannot do what was asked; the message is a sentence for the user and says the way out. */
public final class Refusal extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public Refusal(String message) {
        super(message);
    }

    public Refusal(String message, Throwable cause) {
        super(message, cause);
    }
}
