package dev.millrace.runtime.train;

import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;

/**
 * How many records each consumer group has still to consume: end of the log minus committed offset, summed over
 * its partitions. Transaction markers count as records, as they do in every lag monitor.
 */
public final class ConsumerLag {
    private static final Duration LIMIT = Duration.ofSeconds(5);

    private final Admin admin;
    private final Map<String, String> groups;

    /**
     * @param admin stays the caller's
     * @param groups what to call each group, by group id, in the order of the answer
     */
    public ConsumerLag(Admin admin, Map<String, String> groups) {
        this.admin = admin;
        this.groups = new LinkedHashMap<>(groups);
    }

    /**
     * Lag by name; a group that has committed nothing yet is left out.
     *
     * @throws TimeoutException if the broker did not answer within five seconds
     */
    public Map<String, Long> read() throws InterruptedException, ExecutionException, TimeoutException {
        Map<String, Long> lags = new TreeMap<>();
        for (Map.Entry<String, String> group : groups.entrySet()) {
            Map<TopicPartition, OffsetAndMetadata> committed = admin.listConsumerGroupOffsets(group.getKey())
                    .partitionsToOffsetAndMetadata()
                    .get(LIMIT.toMillis(), TimeUnit.MILLISECONDS);
            Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
            committed.forEach((partition, offset) -> {
                if (offset != null) {
                    asked.put(partition, OffsetSpec.latest());
                }
            });
            if (asked.isEmpty()) {
                continue;
            }
            var ends = admin.listOffsets(asked, new ListOffsetsOptions(IsolationLevel.READ_COMMITTED))
                    .all()
                    .get(LIMIT.toMillis(), TimeUnit.MILLISECONDS);
            long lag = 0;
            for (TopicPartition partition : asked.keySet()) {
                lag += Math.max(
                        0,
                        Objects.requireNonNull(ends.get(partition)).offset()
                                - Objects.requireNonNull(committed.get(partition))
                                        .offset());
            }
            lags.put(group.getValue(), lag);
        }
        return lags;
    }
}
