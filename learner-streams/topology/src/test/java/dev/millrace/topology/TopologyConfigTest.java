package dev.millrace.topology;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.topology.batch.GroupsConfig;
import dev.millrace.topology.batch.GroupsConfig.ZeroVariance;
import dev.millrace.topology.ingress.IngressConfig;
import dev.millrace.topology.join.JoinConfig;
import dev.millrace.topology.state.StateStores;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

class TopologyConfigTest {

    private static void refused(String message, ThrowingCallable configuration) {
        assertThatThrownBy(configuration)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith(message);
    }

    private static RuntimeConfig runtime(
            int threads, int sessionMs, String instance, int transactionMs, String compression) {
        return new RuntimeConfig(
                threads,
                100,
                0,
                StateStores.Kind.IN_MEMORY,
                0,
                0,
                8 << 20,
                1,
                0,
                RebalanceProtocol.AUTO,
                sessionMs,
                instance,
                transactionMs,
                compression,
                1000,
                1000,
                1000);
    }

    @Test
    void shouldHaveTheDefaultsOfTheDefaultRun() {
        TopologyConfig defaults = TopologyConfig.defaults();
        assertThat(defaults.batch().sequences()).isEqualTo(256);
    }

    @Test
    void shouldRefuseImpossibleValuesNamingTheKey() {
        refused("sequences must be at least 1", () -> new BatchConfig(0, 0, BatchConfig.Order.COMPLETION, 0, false));
        refused("min_size must be at least 1", () -> new GroupsConfig(1, 0, 1, 1, ZeroVariance.KEEP));
        refused("deadline_ms must be at least 1", () -> new GroupsConfig(0, 2, 1, 1, ZeroVariance.KEEP));
        refused(
                "closed_retention_ms must be at least deadline_ms 5",
                () -> new GroupsConfig(5, 2, 1, 4, ZeroVariance.KEEP));
        refused("max_group_size must be in [1, 65536]: 0", () -> new IngressConfig("", 0, 0, 1));
        refused("max_reward must be greater than 0", () -> new IngressConfig("", 0, 1, Double.NaN));
        refused("vocabulary_size must be at least 0", () -> new IngressConfig("", -1, 1, 1));
        refused("unscored_after_ms must be at least 1", () -> new JoinConfig(false, false, false, 0, 1, 1, 0, 1, 1));
        refused(
                "dedupe_retention_ms must be at least unscored_after_ms 10",
                () -> new JoinConfig(false, false, false, 10, 1, 1, 0, 9, 1));
    }

    @Test
    void shouldRefuseRuntimeSettingsThatCannotWork() {
        refused("threads must be at least 1: 0", () -> runtime(0, 6000, "", 10_000, "lz4"));
        refused("session_timeout_ms must be at least 3000", () -> runtime(1, 2999, "", 10_000, "lz4"));
        refused("instance_id must be", () -> runtime(1, 6000, "a b", 10_000, "lz4"));
        refused("compression must be one of", () -> runtime(1, 6000, "", 10_000, "rar"));
        assertThatCode(() -> runtime(1, 6000, "a", 10_000, "zstd")).doesNotThrowAnyException();
    }
}
