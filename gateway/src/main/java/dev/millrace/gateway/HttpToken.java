package dev.millrace.gateway;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The token that calls must carry, if they must carry one. */
final class HttpToken {
    private static final int LEAST = 16;

    private final byte @Nullable [] expected;

    private HttpToken(byte @Nullable [] expected) {
        this.expected = expected;
    }

    /**
     * The token that the environment has.
     *
     * @param key that names the variable, for messages
     * @param variable empty for none
     * @throws IllegalArgumentException if the variable is not there, or holds too short a token
     */
    static HttpToken of(String key, String variable, Map<String, String> environment) {
        if (variable.isEmpty()) {
            return new HttpToken(null);
        }
        String token = environment.getOrDefault(variable, "");
        if (token.length() < LEAST) {
            throw new IllegalArgumentException(key + " is " + variable
                    + ", and that variable of the environment holds " + token.length()
                    + " characters; a token has at least "
                    + LEAST + ", so set it before the start: openssl rand -hex 32");
        }
        return new HttpToken(("Bearer " + token).getBytes(StandardCharsets.UTF_8));
    }

    /** Whether calls must carry one. */
    boolean isAsked() {
        return expected != null;
    }

    /** Whether a call may come in with this header; looks at all of it, however it differs. */
    boolean lets(@Nullable String authorization) {
        return expected == null
                || authorization != null
                        && MessageDigest.isEqual(expected, authorization.getBytes(StandardCharsets.UTF_8));
    }
}
