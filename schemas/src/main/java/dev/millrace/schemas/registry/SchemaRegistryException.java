package dev.millrace.schemas.registry;

import org.jspecify.annotations.Nullable;

/** The registry is unreachable, or refused a schema. */
public class SchemaRegistryException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public SchemaRegistryException(String message) {
        super(message);
    }

    public SchemaRegistryException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
