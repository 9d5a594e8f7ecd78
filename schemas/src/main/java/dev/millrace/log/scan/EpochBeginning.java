package dev.millrace.log.scan;

import dev.millrace.schemas.run.EpochLineage;
import java.util.Collection;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Where a group of an epoch begins to read that has committed nothing there: where the epoch does, not where the topic does. */
public final class EpochBeginning {
    private EpochBeginning() {}

    /**
     * To be called when partitions were assigned. In a run's first epoch it does nothing.
     *
     * @param consumer a member of one of the epoch's groups
     */
    public static void seek(Consumer<?, ?> consumer, Collection<TopicPartition> assigned, EpochLineage lineage) {
        if (lineage.beganAt().isEmpty() || assigned.isEmpty()) {
            return;
        }
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(Set.copyOf(assigned));
        for (TopicPartition partition : assigned) {
            if (committed.get(partition) == null) {
                consumer.seek(partition, lineage.beginning(partition.topic(), partition.partition()));
            }
        }
    }
}
