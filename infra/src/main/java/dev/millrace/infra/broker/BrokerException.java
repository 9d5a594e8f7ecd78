package dev.millrace.infra.broker;

import org.jspecify.annotations.Nullable;

/** The broker could not start, or cannot go on; the message is a sentence for the user. */
public final class BrokerException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public BrokerException(String message) {
        super(message);
    }

    public BrokerException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
