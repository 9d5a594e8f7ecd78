package dev.millrace.gateway.engine;

import org.jspecify.annotations.Nullable;

/** An external engine failed; the message says how and what to do. */
public final class EngineException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Consequence for the caller. */
    public enum Kind {
        /** Unreachable; may come back without its weights. */
        AWAY,
        /** Retryable. */
        FAILED,
        /** The answer is impossible and is not trained on. */
        UNTRUE,
        /** Not the configured engine or setup; not retryable. */
        UNFIT
    }

    private final Kind kind;

    private EngineException(Kind kind, String message, @Nullable Throwable cause) {
        super(message, cause);
        this.kind = kind;
    }

    static EngineException away(String message, Throwable cause) {
        return new EngineException(Kind.AWAY, message, cause);
    }

    static EngineException failed(String message) {
        return new EngineException(Kind.FAILED, message, null);
    }

    static EngineException failed(String message, Throwable cause) {
        return new EngineException(Kind.FAILED, message, cause);
    }

    static EngineException untrue(String message) {
        return new EngineException(Kind.UNTRUE, message, null);
    }

    static EngineException unfit(String message) {
        return new EngineException(Kind.UNFIT, message, null);
    }

    public Kind kind() {
        return kind;
    }
}
