package dev.millrace.infra.broker;

/**
 * Settings of our own broker.
 *
 * @param port loopback port; 0 for any free one
 * @param maxRecordBytes largest record batch, 1 MiB to 256 MiB
 * @param minFreeBytes free disk space required at start, at least 0
 * @param startTimeoutMs start timeout, at least 1000
 * @param stopTimeoutMs stop timeout, at least 1000
 * @param durability what a power loss cannot take
 */
public record BrokerConfig(
        int port,
        int maxRecordBytes,
        long minFreeBytes,
        long startTimeoutMs,
        long stopTimeoutMs,
        Durability durability) {
    private static final int MIN_RECORD_BYTES = 1 << 20;
    private static final int MAX_RECORD_BYTES = 256 << 20;
    private static final long MIN_TIMEOUT_MS = 1_000;

    public BrokerConfig {
        if (port < 0 || port > 65_535) {
            throw new IllegalArgumentException("port must be between 0 and 65535: " + port);
        }
        if (maxRecordBytes < MIN_RECORD_BYTES || maxRecordBytes > MAX_RECORD_BYTES) {
            throw new IllegalArgumentException("max_record_bytes must be between " + MIN_RECORD_BYTES + " and "
                    + MAX_RECORD_BYTES + ": " + maxRecordBytes);
        }
        if (minFreeBytes < 0) {
            throw new IllegalArgumentException("min_free_bytes must be at least 0: " + minFreeBytes);
        }
        if (startTimeoutMs < MIN_TIMEOUT_MS) {
            throw new IllegalArgumentException("start_timeout_ms must be at least 1000: " + startTimeoutMs);
        }
        if (stopTimeoutMs < MIN_TIMEOUT_MS) {
            throw new IllegalArgumentException("stop_timeout_ms must be at least 1000: " + stopTimeoutMs);
        }
    }

    public static BrokerConfig defaults() {
        return new BrokerConfig(0, 16 << 20, 128L << 20, 180_000, 20_000, Durability.VERSIONS);
    }

    public BrokerConfig withPort(int otherPort) {
        return new BrokerConfig(otherPort, maxRecordBytes, minFreeBytes, startTimeoutMs, stopTimeoutMs, durability);
    }
}
