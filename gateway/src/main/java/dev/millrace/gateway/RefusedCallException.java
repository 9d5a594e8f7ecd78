package dev.millrace.gateway;

import org.jspecify.annotations.Nullable;

/** A refused call, with the reason in OpenAI's format. */
final class RefusedCallException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final int status;
    private final String code;
    private final @Nullable String parameter;

    private RefusedCallException(int status, String code, @Nullable String parameter, String message) {
        super(message, null, false, false);
        this.status = status;
        this.code = code;
        this.parameter = parameter;
    }

    static RefusedCallException invalid(@Nullable String parameter, String message) {
        return new RefusedCallException(400, "invalid_value", parameter, message);
    }

    static RefusedCallException unsupported(String parameter, String message) {
        return new RefusedCallException(400, "unsupported_parameter", parameter, message);
    }

    static RefusedCallException tooLong(String message) {
        return new RefusedCallException(400, "context_length_exceeded", "messages", message);
    }

    static RefusedCallException unauthorized() {
        return new RefusedCallException(
                401,
                "invalid_api_key",
                null,
                "the call must carry the gateway's token: Authorization: Bearer TOKEN; give it to the client as its API key");
    }

    static RefusedCallException notFound(String message) {
        return new RefusedCallException(404, "not_found", null, message);
    }

    static RefusedCallException noModel(String name, String policy) {
        return new RefusedCallException(
                404,
                "model_not_found",
                "model",
                "cannot find the model '" + name + "': expected '" + policy + "'; list the models of the session");
    }

    /** Contradicts the session; not retryable. */
    static RefusedCallException conflict(String message) {
        return new RefusedCallException(422, "conflict", null, message);
    }

    static RefusedCallException tooLarge(String message) {
        return new RefusedCallException(413, "body_too_large", null, message);
    }

    static RefusedCallException tooSlow(String message) {
        return new RefusedCallException(408, "body_too_slow", null, message);
    }

    /** A limit is reached; retryable later. */
    static RefusedCallException tooMany(String code, String message) {
        return new RefusedCallException(429, code, null, message);
    }

    /** Retryable later. */
    static RefusedCallException notNow(String code, String message) {
        return new RefusedCallException(503, code, null, message);
    }

    int status() {
        return status;
    }

    String code() {
        return code;
    }

    @Nullable
    String parameter() {
        return parameter;
    }

    String type() {
        return switch (status) {
            case 401 -> "authentication_error";
            case 404 -> "not_found_error";
            case 408 -> "timeout_error";
            case 429 -> "rate_limit_error";
            case 500, 503 -> "server_error";
            default -> "invalid_request_error";
        };
    }
}
