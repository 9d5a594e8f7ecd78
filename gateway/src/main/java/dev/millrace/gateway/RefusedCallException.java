package dev.millrace.gateway;

import org.jspecify.annotations.Nullable;

/** A call that is not answered, and why, as clients of the OpenAI API are told. */
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

    /** What it asks for cannot be done. */
    static RefusedCallException invalid(@Nullable String parameter, String message) {
        return new RefusedCallException(400, "invalid_value", parameter, message);
    }

    /** It names something that this gateway does not do. */
    static RefusedCallException unsupported(String parameter, String message) {
        return new RefusedCallException(400, "unsupported_parameter", parameter, message);
    }

    /** Prompt and answer do not fit. */
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

    /** It contradicts what has happened; clients are not to repeat it. */
    static RefusedCallException conflict(String message) {
        return new RefusedCallException(422, "conflict", null, message);
    }

    static RefusedCallException tooLarge(String message) {
        return new RefusedCallException(413, "body_too_large", null, message);
    }

    /** Clients may repeat it at once. */
    static RefusedCallException tooSlow(String message) {
        return new RefusedCallException(408, "body_too_slow", null, message);
    }

    /** A limit is reached; clients may repeat it later. */
    static RefusedCallException tooMany(String code, String message) {
        return new RefusedCallException(429, code, null, message);
    }

    /** Not now; clients may repeat it later. */
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

    /** As OpenAI's clients name kinds of errors. */
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
