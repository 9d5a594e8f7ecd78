package dev.millrace.generator.environment.remote;

/** Who was asked has not answered, or not with what was asked for; the message is a sentence. */
public final class PartnerException extends RuntimeException {
    private static final long serialVersionUID = 1;

    PartnerException(String message) {
        super(message);
    }

    PartnerException(String message, Throwable cause) {
        super(message, cause);
    }
}
