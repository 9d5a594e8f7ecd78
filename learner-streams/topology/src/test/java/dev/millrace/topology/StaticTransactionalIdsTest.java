package dev.millrace.topology;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.topology.TopologyRunner.StaticTransactionalIds;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.junit.jupiter.api.Test;

class StaticTransactionalIdsTest {
    private final StaticTransactionalIds clients =
            new StaticTransactionalIds("run-topology", "trajectories", Set.of("rollouts"));

    @Test
    void shouldNameTransactionsByTheThreadAndNotByWhatTheEngineDrew() {
        Map<String, Object> config = producer();
        config.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, "run-topology-3f2a-4b1c-2");

        clients.getProducer(config).close(Duration.ZERO);

        assertThat(config).containsEntry(ProducerConfig.TRANSACTIONAL_ID_CONFIG, "run-topology-2");
    }

    @Test
    void shouldMakeProducersWithoutTransactionsAtLeastOnce() {
        Map<String, Object> config = producer();

        clients.getProducer(config).close(Duration.ZERO);

        assertThat(config).doesNotContainKey(ProducerConfig.TRANSACTIONAL_ID_CONFIG);
    }

    private static Map<String, Object> producer() {
        return new HashMap<>(Map.of(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:1"));
    }
}
