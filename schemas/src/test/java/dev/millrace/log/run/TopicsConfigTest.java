package dev.millrace.log.run;

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
    void shouldMakeRoomByThePolicysSizeAndRefuseLessThanItNeeds() {
        TopicsConfig small = D.sizedFor(1L << 20, 1L << 21);
        assertThat(small.weightsRetentionBytes()).isEqualTo(1L << 31);
        assertThat(small.optimizerRetentionBytes()).isEqualTo(1L << 31);
        TopicsConfig large = D.sizedFor(1L << 34, 1L << 33);
        assertThat(large.weightsRetentionBytes()).isEqualTo(1L << 35);
        assertThat(large.optimizerRetentionBytes()).isEqualTo(1L << 34);

        assertThat(large.sizedFor(1, 1)).as("what is given stays").isEqualTo(large);
        assertThatCode(() -> D.requireRoomFor(1L << 40, 1L << 40)).doesNotThrowAnyException();
        assertThatCode(() -> large.requireRoomFor(1L << 35, 1L << 34)).doesNotThrowAnyException();
        assertThatThrownBy(() -> large.requireRoomFor(1L << 35, (1L << 34) + 1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("optimizer_retention_bytes must be at least 17179869185 to keep the versions that the run's"
                        + " roles may reach back to, or 0 to leave it to the model's size: 17179869184");
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
