package dev.millrace.runtime.config;

import dev.millrace.log.SecretException;
import dev.millrace.log.SecretSettings;
import dev.millrace.log.SecretText;
import java.net.URI;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * Exports meters to an OpenTelemetry collector by OTLP over HTTP.
 *
 * @param url collector, such as {@code http://127.0.0.1:4318/v1/metrics}; empty for none
 * @param headers request headers, such as {@code Authorization}; values may reference secrets as in {@code kafka};
 *     never shown
 * @param periodMs interval of requests, at least 1000
 */
public record OtlpConfig(SecretText url, Map<String, SecretText> headers, int periodMs) {
    private static final int LEAST_PERIOD_MS = 1000;

    public OtlpConfig {
        if (periodMs < LEAST_PERIOD_MS) {
            throw new IllegalArgumentException("period_ms must be at least " + LEAST_PERIOD_MS + ": " + periodMs);
        }
        String scheme = url.written().toLowerCase(Locale.ROOT);
        boolean isReference = scheme.startsWith("${");
        if (!url.isEmpty() && !isReference && !scheme.startsWith("http://") && !scheme.startsWith("https://")) {
            throw new IllegalArgumentException("url must begin with http:// or https://: " + url.shown());
        }
        if (url.isEmpty() && !headers.isEmpty()) {
            throw new IllegalArgumentException("headers are given without a url; give metrics.otlp.url too");
        }
        headers = Map.copyOf(headers);
    }

    public static OtlpConfig defaults() {
        return new OtlpConfig(SecretText.ofAddress(""), Map.of(), 10_000);
    }

    /**
     * The address with its secrets in it, for the client alone.
     *
     * @throws ConfigException if a reference cannot be resolved, or it is not a URL
     */
    public String address() {
        try {
            String address = SecretSettings.address("metrics.otlp.url", url.written());
            URI.create(address);
            return address;
        } catch (SecretException e) {
            throw new ConfigException(String.valueOf(e.getMessage()), e);
        } catch (IllegalArgumentException e) {
            throw new ConfigException("metrics.otlp.url is not a URL: " + url.shown(), e);
        }
    }

    /**
     * The headers with their secrets in them, for the client alone.
     *
     * @throws ConfigException if a reference cannot be resolved
     */
    public Map<String, String> secretHeaders() {
        Map<String, String> secret = new TreeMap<>();
        try {
            headers.forEach(
                    (name, text) -> secret.put(name, SecretSettings.text("metrics.otlp.headers." + name, text)));
        } catch (SecretException e) {
            throw new ConfigException(String.valueOf(e.getMessage()), e);
        }
        return secret;
    }
}
