package dev.millrace.gateway;

import dev.millrace.gateway.TurnPlayer.SamplingSource;
import dev.millrace.policy.decoder.Precision;
import java.util.Locale;

/**
 * How agents reach a gateway, and what they may take of it. Slots, capacity and identity are the generator's.
 *
 * @param enabled run a gateway instead of a generator in {@code train}
 * @param host listen address; other than loopback needs a token
 * @param port listen port; 0 for any free one
 * @param publicUrl URL for agents, if not host and port
 * @param tokenVariable environment variable with the bearer token of all calls; empty for none, on loopback only
 * @param sessions most open sessions
 * @param calls most concurrent calls, and as many bodies being read
 * @param bodyBytes largest call body
 * @param bodyMs longest time to receive a body
 * @param bodyBytesPerSecond lowest receive rate after the first 2 s
 * @param turns most turns per session
 * @param idleMs idle time after which a session ends without a verdict
 * @param limitMs age at which a session ends without a verdict
 * @param turnTimeoutMs timeout of one engine answer
 * @param claimWaitMs longest wait of a new session for a sample
 * @param sampling who sets the sampling of turns
 * @param prefixCacheMb MiB for KV caches between turns; 0 for none; -1 is 256 with {@code generator.precision}
 *     {@code f32}, otherwise 0
 */
public record GatewayConfig(
        boolean enabled,
        String host,
        int port,
        String publicUrl,
        String tokenVariable,
        int sessions,
        int calls,
        int bodyBytes,
        long bodyMs,
        int bodyBytesPerSecond,
        int turns,
        long idleMs,
        long limitMs,
        long turnTimeoutMs,
        long claimWaitMs,
        SamplingSource sampling,
        int prefixCacheMb) {
    private static final int DEFAULT_PREFIX_MB = 256;

    public GatewayConfig {
        between("port", port, 0, 65_535);
        between("sessions", sessions, 1, 100_000);
        between("calls", calls, 1, 10_000);
        between("body_bytes", bodyBytes, 1_024, 64 << 20);
        between("body_ms", bodyMs, 100, HttpDefaults.LONGEST_REQUEST_S * 1_000L);
        between("body_bytes_per_second", bodyBytesPerSecond, 0, 64 << 20);
        between("turns", turns, 1, 100_000);
        between("idle_ms", idleMs, 100, Integer.MAX_VALUE);
        between("limit_ms", limitMs, 100, Integer.MAX_VALUE);
        between("turn_timeout_ms", turnTimeoutMs, 10, Integer.MAX_VALUE);
        between("claim_wait_ms", claimWaitMs, 0, 60_000);
        between("prefix_cache_mb", prefixCacheMb, -1, 1 << 20);
        HttpConfig.requireTokenOffLoopback(host, tokenVariable);
        if (!publicUrl.isEmpty() && !publicUrl.matches("https?://\\S+[^/\\s]")) {
            throw new IllegalArgumentException(
                    "public_url must be http://... or https://... without a slash at its end: '" + publicUrl + "'");
        }
        if (sampling == null) {
            throw new IllegalArgumentException("sampling must be agent or run: null");
        }
    }

    /**
     * KV-cache bytes between turns.
     *
     * @param precision of the engine
     * @throws IllegalArgumentException if that precision cannot be resumed exactly
     */
    public long prefixBytes(Precision precision) {
        boolean isCoarse = precision != Precision.F32;
        if (isCoarse && prefixCacheMb > 0) {
            throw new IllegalArgumentException(
                    "prefix_cache_mb must be 0, or -1 for what follows, where generator.precision is "
                            + precision.name().toLowerCase(Locale.ROOT) + ": " + prefixCacheMb
                            + "; its rounding makes log-probs of a cached and a prefilled prompt differ");
        }
        long mb = prefixCacheMb >= 0 ? prefixCacheMb : isCoarse ? 0 : DEFAULT_PREFIX_MB;
        return mb << 20;
    }

    private static void between(String key, long value, long least, long most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(key + " must be from " + least + " to " + most + ": " + value);
        }
    }

    public static GatewayConfig defaults() {
        return new GatewayConfig(
                false,
                "127.0.0.1",
                8_090,
                "",
                "",
                2_000,
                512,
                4 << 20,
                30_000,
                1_024,
                1_000,
                600_000,
                3_600_000,
                300_000,
                5_000,
                SamplingSource.AGENT,
                -1);
    }
}
