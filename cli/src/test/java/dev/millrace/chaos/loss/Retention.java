package dev.millrace.chaos.loss;

import dev.millrace.chaos.ChaosException;
import dev.millrace.log.LogConnection;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;

/** Deletes what is on a partition, read or not, as a retention does that is too short. */
public final class Retention {
    private static final long LIMIT_S = 20;

    private Retention() {}

    /**
     * Deletes all of one of a topic's partitions, drawn among those with records.
     *
     * @param topic with the run's prefix
     * @return empty if the topic has no records
     */
    public static Optional<Lost> of(LogConnection connection, String topic, SplittableRandom random)
            throws InterruptedException {
        try (Admin admin = Admin.create(connection.admin())) {
            List<TopicPartition> partitions =
                    admin
                            .describeTopics(List.of(topic))
                            .allTopicNames()
                            .get(LIMIT_S, TimeUnit.SECONDS)
                            .values()
                            .stream()
                            .flatMap(description -> description.partitions().stream())
                            .map(TopicPartitionInfo::partition)
                            .sorted()
                            .map(partition -> new TopicPartition(topic, partition))
                            .toList();
            Map<TopicPartition, Long> begins = offsets(admin, partitions, OffsetSpec.earliest());
            Map<TopicPartition, Long> ends = offsets(admin, partitions, OffsetSpec.latest());
            List<Lost> there = new ArrayList<>();
            for (TopicPartition partition : partitions) {
                Lost all = new Lost(
                        topic,
                        partition.partition(),
                        begins.getOrDefault(partition, 0L),
                        ends.getOrDefault(partition, 0L));
                if (all.to() > all.from()) {
                    there.add(all);
                }
            }
            if (there.isEmpty()) {
                return Optional.empty();
            }
            Lost lost = there.get(random.nextInt(there.size()));
            admin.deleteRecords(Map.of(
                            new TopicPartition(topic, lost.partition()), RecordsToDelete.beforeOffset(lost.to())))
                    .all()
                    .get(LIMIT_S, TimeUnit.SECONDS);
            return Optional.of(lost);
        } catch (ExecutionException | TimeoutException e) {
            throw new ChaosException("records of " + topic + " could not be deleted: " + e.getMessage(), e);
        }
    }

    private static Map<TopicPartition, Long> offsets(Admin admin, List<TopicPartition> partitions, OffsetSpec which)
            throws InterruptedException, ExecutionException, TimeoutException {
        return admin
                .listOffsets(partitions.stream().collect(Collectors.toMap(partition -> partition, partition -> which)))
                .all()
                .get(LIMIT_S, TimeUnit.SECONDS)
                .entrySet()
                .stream()
                .collect(Collectors.toMap(
                        Map.Entry::getKey, entry -> entry.getValue().offset()));
    }
}
