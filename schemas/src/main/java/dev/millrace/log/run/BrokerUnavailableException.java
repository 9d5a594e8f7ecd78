package dev.millrace.log.run;

/** No broker answers within the limit; one may answer later. */
public final class BrokerUnavailableException extends LogSetupException {
    private static final long serialVersionUID = 1L;

    BrokerUnavailableException(String message, Throwable cause) {
        super(message, cause);
    }
}
