package dev.millrace.log.topics;

/** No broker answers within the limit; one may answer later. */
public final class BrokerAwayException extends LogSetupException {
    private static final long serialVersionUID = 1L;

    BrokerAwayException(String message, Throwable cause) {
        super(message, cause);
    }
}
