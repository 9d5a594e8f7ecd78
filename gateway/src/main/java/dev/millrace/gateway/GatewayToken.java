package dev.millrace.gateway;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The token that calls must carry, if they must carry one. */
final class GatewayToken {
    private static final int LEAST = 16;

    private final byte @Nullable [] expected;

    private GatewayToken(byte @Nullable [] expected) {
        this.expected = expected;
    }

    /** @throws IllegalArgumentException if the configuration names a variable that is not there, or too short a token */
    static GatewayToken of(GatewayConfig config) {
        return of(config, System.getenv());
    }

    static GatewayToken of(GatewayConfig config, Map<String, String> environment) {
        if (config.tokenVariable().isEmpty()) {
            return new GatewayToken(null);
        }
        String token = environment.getOrDefault(config.tokenVariable(), "");
        if (token.length() < LEAST) {
            throw new IllegalArgumentException("gateway.token_variable is " + config.tokenVariable()
                    + ", and that variable of the environment holds " + token.length()
                    + " characters; a token has at least "
                    + LEAST + ", so set it before the start: openssl rand -hex 32");
        }
        return new GatewayToken(("Bearer " + token).getBytes(StandardCharsets.UTF_8));
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
