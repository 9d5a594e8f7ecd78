package dev.millrace.runtime.config;

/**
 * Millrace's HTTP port: Prometheus metrics and the schemas' read side.
 *
 * @param port on loopback; 0 takes any free one, -1 opens none
 */
public record MetricsConfig(int port) {
    public MetricsConfig {
        if (port < -1 || port > 65535) {
            throw new IllegalArgumentException("port must be between -1 and 65535: " + port);
        }
    }

    public static MetricsConfig defaults() {
        return new MetricsConfig(-1);
    }
}
