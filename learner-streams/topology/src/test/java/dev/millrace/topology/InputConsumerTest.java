package dev.millrace.topology;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.topology.TopologyRunner.StaticTransactionalIds.InputConsumer;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.LogTruncationException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

class InputConsumerTest {
    private static final TopicPartition FIRST = new TopicPartition("rollouts", 0);
    private static final TopicPartition SECOND = new TopicPartition("rollouts", 1);

    private final Map<TopicPartition, Long> places = new HashMap<>();

    private void seekNewEnds(Map<TopicPartition, OffsetAndMetadata> ends) {
        InputConsumer.seekNewEnds(
                new LogTruncationException("lost", Map.of(FIRST, 2_280L, SECOND, 7L), ends),
                (partition, end) -> places.put(partition, end.offset()));
    }

    @Test
    void shouldReadOnWhereEachPartitionEnds() {
        seekNewEnds(Map.of(FIRST, new OffsetAndMetadata(2_267), SECOND, new OffsetAndMetadata(5)));

        assertThat(places).containsExactlyInAnyOrderEntriesOf(Map.of(FIRST, 2_267L, SECOND, 5L));
    }

    @Test
    void shouldLeaveItToTheEngineWhereTheEndOfOneIsNotKnown() {
        assertThatThrownBy(() -> seekNewEnds(Map.of(FIRST, new OffsetAndMetadata(2_267))))
                .isInstanceOf(LogTruncationException.class)
                .hasMessage("lost");
        assertThat(places).isEmpty();
    }
}
