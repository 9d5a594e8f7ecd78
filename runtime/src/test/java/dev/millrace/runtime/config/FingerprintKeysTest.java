package dev.millrace.runtime.config;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.TopologySettings;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

class FingerprintKeysTest {

    @Test
    void shouldCallTheSettingsThatDecideByTheirKeysInAConfiguration() {
        Set<String> keys = new HashSet<>(TopologySettings.of(TopologyConfig.defaults(), Algorithm.defaults(), 1)
                .values()
                .keySet());
        assertThat(keys.remove("topology.max_value_bytes")).isTrue(); // follows from topics.max_record_bytes
        assertThat(keys.remove("algorithm.weights.compare")).isTrue(); // follows from algorithm.objective
        assertThat(keys.stream().map(key -> key.replaceAll("\\[.*", ""))) // of a list, its own key
                .hasSizeGreaterThan(30)
                .isSubsetOf(ConfigBinder.keys(MillraceConfig.defaults()));
    }
}
