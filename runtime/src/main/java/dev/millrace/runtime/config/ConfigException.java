package dev.millrace.runtime.config;

/** The configuration is refused; the message is a sentence for the user: which key, which value, what is allowed. */
public final class ConfigException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public ConfigException(String message) {
        super(message);
    }

    public ConfigException(String message, Throwable cause) {
        super(message, cause);
    }
}
