package dev.millrace.log.topics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.function.Function;
import org.junit.jupiter.api.Test;

class TopicsConfigTest {
    private static final TopicsConfig D = TopicsConfig.defaults();

    @Test
    void shouldNameKeyValueAndBoundOfWhatItRefuses() {
        assertRefused(v -> with(v, -1, -1, -1, "_schemas"), 0, "partitions must be between 1 and 1000: 0");
        assertRefused(v -> with(4, v, -1, -1, "_schemas"), 0, "replication_factor must be between 1 and 9: 0");
        assertRefused(
                v -> with(4, 3, v, -1, "_schemas"),
                4,
                "min_insync_replicas must be at most replication_factor=3, or nothing can be written: 4");
        assertRefused(
                v -> with(4, 3, 2, v, "_schemas"), 0, "record_retention_ms must be at least 1, or -1 for no limit: 0");
        assertRefused(
                v -> with(4, 3, 2, v, "a b"),
                -1,
                "schemas_topic must be 1 to 249 letters, digits, '-', '_' or '.': a b");
    }

    @Test
    void shouldRefuseAPolicyOfWhichTooFewVersionsAreKept() {
        assertThat(D.weightsRetentionBytes()).isEqualTo(1L << 31);
        assertThatCode(() -> D.requireRoomFor(1L << 27, 1L << 28, 8)).doesNotThrowAnyException();
        assertThatThrownBy(() -> D.requireRoomFor(1L << 27, 1L << 28, 9))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("optimizer_retention_bytes must be at least 2415919104 to keep 9 versions "
                        + "of 268435456 bytes: 2147483648");
    }

    private static void assertRefused(Function<Integer, TopicsConfig> made, int value, String message) {
        assertThatThrownBy(() -> made.apply(value))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(message);
    }

    private static TopicsConfig with(
            int partitions, int replication, int insync, long retentionMs, String schemasTopic) {
        return new TopicsConfig(
                partitions,
                replication,
                insync,
                retentionMs,
                D.passingRetentionMs(),
                D.weightsRetentionBytes(),
                D.optimizerRetentionBytes(),
                D.maxRecordBytes(),
                schemasTopic,
                D.timeoutMs());
    }
}
