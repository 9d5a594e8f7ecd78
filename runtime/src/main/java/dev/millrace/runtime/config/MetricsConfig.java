package dev.millrace.runtime.config;

/**
 * Outputs for the meters of this process.
 *
 * @param port HTTP port for Prometheus, probes and schemas; 0 for any free one, -1 for none
 * @param tensorboard event files
 * @param otlp OpenTelemetry
 */
public record MetricsConfig(int port, TensorBoardConfig tensorboard, OtlpConfig otlp) {
    public MetricsConfig {
        if (port < -1 || port > 65535) {
            throw new IllegalArgumentException("port must be between -1 and 65535: " + port);
        }
    }

    public static MetricsConfig defaults() {
        return new MetricsConfig(-1, TensorBoardConfig.defaults(), OtlpConfig.defaults());
    }

    MetricsConfig with(TensorBoardConfig other) {
        return new MetricsConfig(port, other, otlp);
    }
}
