package dev.millrace.schemas.registry;

import org.jspecify.annotations.Nullable;

/** The registry did not answer or reported a server error; retryable. */
public final class SchemaRegistryUnavailableException extends SchemaRegistryException {
    private static final long serialVersionUID = 1L;

    public SchemaRegistryUnavailableException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
