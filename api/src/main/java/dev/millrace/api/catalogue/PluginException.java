package dev.millrace.api.catalogue;

import org.jspecify.annotations.Nullable;

/** A plug-in cannot be used; the message names the jar and the way out. */
public final class PluginException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public PluginException(String message) {
        super(message);
    }

    public PluginException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
