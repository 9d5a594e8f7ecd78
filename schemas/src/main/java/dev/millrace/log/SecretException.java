package dev.millrace.log;

/** A secret cannot be had; the message is a sentence for the user, which names the setting and never the secret. */
public final class SecretException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public SecretException(String message) {
        super(message);
    }
}
