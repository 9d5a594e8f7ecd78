package dev.millrace.learner;

import dev.millrace.log.LogConnection;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;

/** How long the log keeps what a step is learnt from. */
public final class BatchesRetention {
    private BatchesRetention() {}

    /**
     * The shorter retention of batches and trajectories, as the cluster has it; very long if neither ends.
     *
     * @throws IllegalStateException if the cluster does not say within the limit
     */
    public static Duration of(LogConnection connection, Duration limit) {
        List<ConfigResource> topics = Stream.of(
                        connection.topics().batches(), connection.topics().trajectories())
                .map(topic -> new ConfigResource(ConfigResource.Type.TOPIC, topic))
                .toList();
        try (Admin admin = Admin.create(connection.admin())) {
            Map<ConfigResource, Config> found =
                    admin.describeConfigs(topics).all().get(limit.toMillis(), TimeUnit.MILLISECONDS);
            return Duration.ofMillis(found.values().stream()
                    .mapToLong(config -> Long.parseLong(
                            config.get(TopicConfig.RETENTION_MS_CONFIG).value()))
                    .filter(ms -> ms >= 0)
                    .min()
                    .orElse(Long.MAX_VALUE));
        } catch (ExecutionException | TimeoutException e) {
            throw new IllegalStateException(
                    "it is not known how long " + topics + " keep their records, and so when a checkpoint is due: " + e,
                    e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while the cluster was asked how long it keeps records", e);
        }
    }
}
