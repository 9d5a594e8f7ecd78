package dev.millrace.infra.broker;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;

/** Says of topics whether each record is on the disk before it is acknowledged. */
final class FlushedTopics {
    /** Where the broker keeps committed offsets and transactions. */
    private static final List<String> OWN = List.of("__consumer_offsets", "__transaction_state");

    private final String bootstrapServers;
    private final long limitMs;

    FlushedTopics(String bootstrapServers, long limitMs) {
        this.bootstrapServers = bootstrapServers;
        this.limitMs = limitMs;
    }

    /** @param topics those of them that are not there are left out */
    void set(Collection<String> topics, boolean isFlushed) {
        ConfigEntry setting = new ConfigEntry(TopicConfig.FLUSH_MESSAGES_INTERVAL_CONFIG, "1");
        AlterConfigOp operation = new AlterConfigOp(setting, isFlushed ? OpType.SET : OpType.DELETE);
        try (Admin admin = Admin.create(
                Map.of("bootstrap.servers", bootstrapServers, "default.api.timeout.ms", Math.toIntExact(limitMs)))) {
            // whoever asks for a group has the topic of offsets made, if nobody has yet
            admin.listConsumerGroupOffsets("nobody")
                    .partitionsToOffsetAndMetadata()
                    .get(limitMs, TimeUnit.MILLISECONDS);
            Set<String> there = new TreeSet<>(admin.listTopics(new ListTopicsOptions().listInternal(true))
                    .names()
                    .get(limitMs, TimeUnit.MILLISECONDS));
            Set<String> meant = new TreeSet<>(topics);
            meant.addAll(OWN);
            meant.retainAll(there);
            admin.incrementalAlterConfigs(meant.stream()
                            .collect(Collectors.toMap(
                                    topic -> new ConfigResource(ConfigResource.Type.TOPIC, topic),
                                    topic -> List.of(operation))))
                    .all()
                    .get(limitMs, TimeUnit.MILLISECONDS);
        } catch (ExecutionException | TimeoutException e) {
            throw new BrokerException(
                    "the broker did not take the setting broker.durability for " + topics + ": " + e.getMessage(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new BrokerException("interrupted while broker.durability was set");
        }
    }
}
