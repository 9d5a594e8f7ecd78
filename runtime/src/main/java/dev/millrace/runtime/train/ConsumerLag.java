package dev.millrace.runtime.train;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.MultiGauge;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.composite.CompositeMeterRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
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
 * Lag of each consumer group: log end offset minus committed offset, summed over its partitions. Transaction markers
 * count as records, as in every lag monitor.
 */
public final class ConsumerLag {
    private static final Duration LIMIT = Duration.ofSeconds(5);

    private final Admin admin;
    private final Map<String, String> groups;
    private final MultiGauge lagOfGroups;

    /**
     * @param admin stays the caller's
     * @param groups display name of each group by group id, in result order
     */
    public ConsumerLag(Admin admin, Map<String, String> groups) {
        this(admin, groups, new CompositeMeterRegistry());
    }

    /** @param meters take the newest values by group id, under the name used by Kafka exporters */
    public ConsumerLag(Admin admin, Map<String, String> groups, MeterRegistry meters) {
        this.admin = admin;
        this.lagOfGroups = MultiGauge.builder("kafka.consumergroup.lag.sum")
                .description("records between the committed offsets of a group and the ends of their partitions")
                .register(meters);
        this.groups = new LinkedHashMap<>(groups);
    }

    /**
     * Lag by name; leaves out groups without a committed offset.
     *
     * @throws TimeoutException if the broker did not answer within five seconds
     */
    public Map<String, Long> read() throws InterruptedException, ExecutionException, TimeoutException {
        Map<String, Long> lags = new TreeMap<>();
        List<MultiGauge.Row<?>> rows = new ArrayList<>();
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
            rows.add(MultiGauge.Row.of(Tags.of("consumergroup", group.getKey()), lag));
        }
        lagOfGroups.register(rows, true);
        return lags;
    }
}
