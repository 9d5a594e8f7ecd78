package dev.millrace.topology;

import dev.millrace.log.LogConnection;
import java.util.Comparator;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets the topology of a later epoch begin where the epoch does. It would pass over what is older in any case; this spares it the
 * reading.
 */
final class EpochOffsets {
    private static final Logger LOG = LoggerFactory.getLogger(EpochOffsets.class);

    private EpochOffsets() {}

    /** @param topics that the topology reads */
    static void begin(LogConnection connection, Set<String> topics, long limitMs) {
        Map<TopicPartition, OffsetAndMetadata> begins = new TreeMap<>(Comparator.comparing(TopicPartition::toString));
        connection.lineage().beganAt().forEach((name, offset) -> {
            int dash = name.lastIndexOf('-');
            TopicPartition partition =
                    new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
            if (topics.contains(partition.topic())) {
                begins.put(partition, new OffsetAndMetadata(offset));
            }
        });
        if (begins.isEmpty()) {
            return;
        }
        String group = connection.group("topology");
        try (Admin admin = Admin.create(connection.admin())) {
            Map<TopicPartition, OffsetAndMetadata> committed = admin.listConsumerGroupOffsets(group)
                    .partitionsToOffsetAndMetadata()
                    .get(limitMs, TimeUnit.MILLISECONDS);
            begins.keySet().removeIf(partition -> committed.get(partition) != null);
            if (!begins.isEmpty()) {
                admin.alterConsumerGroupOffsets(group, begins).all().get(limitMs, TimeUnit.MILLISECONDS);
            }
        } catch (ExecutionException | TimeoutException e) { // an instance that is running has begun there already
            LOG.info("the topology reads from the beginning of its topics: {}", e.toString());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
