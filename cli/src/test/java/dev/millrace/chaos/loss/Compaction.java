package dev.millrace.chaos.loss;

import dev.millrace.chaos.ChaosException;
import dev.millrace.log.LogConnection;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;

/**
 * Compacts every compacted topic of a run, its stores' and the cluster's own among them, completely: it compacts
 * within a second, and removes tombstones at once. Restores the topics' settings on close.
 */
public final class Compaction implements AutoCloseable {
    private static final long LIMIT_S = 20;
    private static final String CLEANER_PAUSE = "log.cleaner.backoff.ms";
    private static final Map<String, String> EAGER = Map.of(
            TopicConfig.SEGMENT_MS_CONFIG, "1000",
            TopicConfig.MIN_CLEANABLE_DIRTY_RATIO_CONFIG, "0",
            TopicConfig.MIN_COMPACTION_LAG_MS_CONFIG, "0",
            TopicConfig.DELETE_RETENTION_MS_CONFIG, "0");
    private static final ConfigResource BROKERS = new ConfigResource(ConfigResource.Type.BROKER, "");

    private final LogConnection connection;
    private final Map<ConfigResource, Collection<AlterConfigOp>> back = new HashMap<>();
    private final List<String> topics;

    private Compaction(LogConnection connection, List<String> topics) {
        this.connection = connection;
        this.topics = topics;
    }

    /** Begins. */
    public static Compaction of(LogConnection connection) throws InterruptedException {
        return asked(connection, admin -> {
            Map<ConfigResource, Config> compacted =
                    compacted(admin, connection.topics().prefix());
            Compaction compaction = new Compaction(
                    connection,
                    compacted.keySet().stream()
                            .map(ConfigResource::name)
                            .sorted()
                            .toList());
            Map<ConfigResource, Collection<AlterConfigOp>> eager = new HashMap<>();
            compacted.forEach((topic, config) -> {
                eager.put(
                        topic,
                        EAGER.entrySet().stream()
                                .map(setting -> set(setting.getKey(), setting.getValue()))
                                .toList());
                compaction.back.put(
                        topic,
                        EAGER.keySet().stream()
                                .map(key -> asItWas(config.get(key)))
                                .toList());
            });
            eager.put(BROKERS, List.of(set(CLEANER_PAUSE, "500")));
            compaction.back.put(
                    BROKERS, List.of(new AlterConfigOp(new ConfigEntry(CLEANER_PAUSE, null), OpType.DELETE)));
            answer(admin.incrementalAlterConfigs(eager).all());
            return compaction;
        });
    }

    private static Map<ConfigResource, Config> compacted(Admin admin, String prefix)
            throws InterruptedException, ExecutionException, TimeoutException {
        List<ConfigResource> all = answer(admin.listTopics(new ListTopicsOptions().listInternal(true))
                        .names())
                .stream()
                .filter(name -> name.startsWith(prefix) || name.startsWith("__"))
                .map(name -> new ConfigResource(ConfigResource.Type.TOPIC, name))
                .toList();
        Map<ConfigResource, Config> compacted = new HashMap<>();
        answer(admin.describeConfigs(all).all()).forEach((topic, config) -> {
            if (config.get(TopicConfig.CLEANUP_POLICY_CONFIG).value().contains(TopicConfig.CLEANUP_POLICY_COMPACT)) {
                compacted.put(topic, config);
            }
        });
        return compacted;
    }

    private static AlterConfigOp set(String key, String value) {
        return new AlterConfigOp(new ConfigEntry(key, value), OpType.SET);
    }

    private static AlterConfigOp asItWas(ConfigEntry entry) {
        return entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG
                ? set(entry.name(), entry.value())
                : new AlterConfigOp(new ConfigEntry(entry.name(), null), OpType.DELETE);
    }

    /** The topics that are compacted. */
    public List<String> topics() {
        return topics;
    }

    /** What they take on the brokers' disks, all copies together. */
    public long bytes() throws InterruptedException {
        return asked(connection, admin -> {
            List<Integer> brokers = answer(admin.describeCluster().nodes()).stream()
                    .map(Node::id)
                    .toList();
            TreeSet<String> ours = new TreeSet<>(topics);
            return answer(admin.describeLogDirs(brokers).allDescriptions()).values().stream()
                    .flatMap(directories -> directories.values().stream())
                    .map(LogDirDescription::replicaInfos)
                    .flatMap(replicas -> replicas.entrySet().stream())
                    .filter(replica -> ours.contains(replica.getKey().topic()))
                    .collect(
                            Collectors.summingLong(replica -> replica.getValue().size()));
        });
    }

    /** Compacts as before. */
    @Override
    public void close() {
        try {
            asked(
                    connection,
                    admin -> answer(admin.incrementalAlterConfigs(back).all()));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private interface Question<T> {
        T ask(Admin admin) throws InterruptedException, ExecutionException, TimeoutException;
    }

    private static <T> T asked(LogConnection connection, Question<T> question) throws InterruptedException {
        try (Admin admin = Admin.create(connection.admin())) {
            return question.ask(admin);
        } catch (ExecutionException e) {
            Throwable cause = Objects.requireNonNullElse(e.getCause(), e);
            throw new ChaosException("compaction cannot be set: " + cause.getMessage(), e);
        } catch (TimeoutException e) {
            throw new ChaosException("the brokers did not answer about compaction within " + LIMIT_S + " s", e);
        }
    }

    private static <T> T answer(KafkaFuture<T> asked)
            throws InterruptedException, ExecutionException, TimeoutException {
        return asked.get(LIMIT_S, TimeUnit.SECONDS);
    }
}
