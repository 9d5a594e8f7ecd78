package dev.millrace.corrections.kl;

/** An estimator was asked to do what it does not do; the message says what it does and what to use. */
public final class KlMisuseException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    KlMisuseException(String message) {
        super(message);
    }
}
