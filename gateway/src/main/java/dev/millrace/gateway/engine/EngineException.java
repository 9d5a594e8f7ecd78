package dev.millrace.gateway.engine;

import org.jspecify.annotations.Nullable;

/** Another program's engine did not do what it was asked for; says what, and what to do. */
public final class EngineException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** What it means for whoever asked. */
    public enum Kind {
        /** It does not answer: it may come back, and may have forgotten its weights by then. */
        AWAY,
        /** It did not do what it was asked for; another time it may. */
        FAILED,
        /** What it answers cannot be true, so that nothing of it is trained on. */
        UNTRUE,
        /** It is not, or not set up as, what the configuration says; asking again changes nothing. */
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
