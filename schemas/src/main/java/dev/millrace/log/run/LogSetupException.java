package dev.millrace.log.run;

/**
 * The cluster or what is on it does not fit the configuration; the message is a sentence for the user with the
 * setting, the value, the bound and a way out.
 */
public class LogSetupException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public LogSetupException(String message) {
        super(message);
    }

    public LogSetupException(String message, Throwable cause) {
        super(message, cause);
    }
}
