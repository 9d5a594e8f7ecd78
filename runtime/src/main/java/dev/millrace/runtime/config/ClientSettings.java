package dev.millrace.runtime.config;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.streams.StreamsConfig;

/**
 * Settings of Kafka's clients under their own names, as users of Kafka write them: {@code kafka.security.protocol} for every
 * client that knows the name, {@code kafka.consumer.fetch.max.bytes} for consumers, likewise {@code producer.},
 * {@code admin.} and {@code streams.}. Settings that a plug-in reads and Kafka does not know go under {@code plugin.}.
 *
 * <p>They override the roles' own settings; those that exactly-once delivery and a run's identity depend on cannot be
 * set.
 */
final class ClientSettings {
    private static final String PLUGIN = "plugin.";
    private static final String STREAMS = "streams.";
    /** Merged with the run's own reporter instead of replacing it. */
    private static final String REPORTERS = "metric.reporters";

    private static final List<String> ENGINE_CLIENTS =
            List.of("main.consumer.", "restore.consumer.", "global.consumer.", "consumer.", "producer.", "admin.");
    private static final Map<String, Set<String>> NAMES = Map.of(
            "consumer.",
            ConsumerConfig.configNames(),
            "producer.",
            ProducerConfig.configNames(),
            "admin.",
            AdminClientConfig.configNames(),
            STREAMS,
            Set.copyOf(StreamsConfig.configDef().names()));

    private static final String EXACTLY_ONCE = "exactly-once delivery depends on it; leave it out";
    private static final String IDENTITY = "the run's identity depends on it; leave it out";
    /** Maps a name to the reason why it cannot be set. */
    private static final Map<String, String> OURS = Map.ofEntries(
            Map.entry("bootstrap.servers", "run.bootstrap_servers (--bootstrap-servers) says where the cluster is"),
            Map.entry("isolation.level", EXACTLY_ONCE),
            Map.entry("enable.auto.commit", EXACTLY_ONCE),
            Map.entry("auto.offset.reset", EXACTLY_ONCE),
            Map.entry("enable.idempotence", EXACTLY_ONCE),
            Map.entry("acks", EXACTLY_ONCE),
            Map.entry("processing.guarantee", EXACTLY_ONCE),
            Map.entry("transactional.id", EXACTLY_ONCE),
            Map.entry("default.timestamp.extractor", EXACTLY_ONCE),
            Map.entry("group.id", IDENTITY),
            Map.entry("group.instance.id", IDENTITY),
            Map.entry("client.id", IDENTITY),
            Map.entry("application.id", IDENTITY),
            Map.entry("key.serializer", IDENTITY),
            Map.entry("value.serializer", IDENTITY),
            Map.entry("key.deserializer", IDENTITY),
            Map.entry("value.deserializer", IDENTITY),
            Map.entry("state.dir", "--state-dir says where state is kept"),
            Map.entry("group.protocol", "topology.runtime.rebalance_protocol says it for the topology"),
            Map.entry("num.stream.threads", "topology.runtime.threads says it"),
            Map.entry("num.standby.replicas", "topology.runtime.standby_replicas says it"),
            Map.entry("commit.interval.ms", "topology.runtime.commit_interval_ms says it"),
            Map.entry("max.task.idle.ms", "topology.runtime.max_task_idle_ms says it"));

    private ClientSettings() {}

    /** @throws ConfigException naming a setting that no client knows, or that must not be set */
    static void check(Map<String, ?> settings) {
        settings.keySet().forEach(ClientSettings::check);
    }

    private static void check(String key) {
        if (key.startsWith(PLUGIN)) {
            return;
        }
        String prefix =
                NAMES.keySet().stream().filter(key::startsWith).findFirst().orElse("");
        String name = key.substring(prefix.length());
        String bare = prefix.equals(STREAMS)
                ? ENGINE_CLIENTS.stream()
                        .filter(name::startsWith)
                        .findFirst()
                        .map(client -> name.substring(client.length()))
                        .orElse(name)
                : name;
        if (OURS.containsKey(bare)) {
            throw new ConfigException("kafka." + key + " must not be set: " + OURS.get(bare));
        }
        Set<String> known = prefix.equals(STREAMS) && !bare.equals(name)
                ? all()
                : prefix.isEmpty() ? all() : Objects.requireNonNull(NAMES.get(prefix), prefix);
        if (!known.contains(bare)) {
            throw new ConfigException("kafka." + key + " is not a setting that Kafka's "
                    + (prefix.isEmpty() ? "clients know" : prefix.replace(".", "") + " knows")
                    + " (settings of a Kafka plug-in go under kafka." + PLUGIN + ")"
                    + NearestKey.of(bare, known.stream().sorted().toList())
                            .map(near -> "; did you mean kafka." + key.substring(0, key.length() - bare.length()) + near
                                    + "?")
                            .orElse(""));
        }
    }

    private static Set<String> all() {
        return NAMES.values().stream().flatMap(Set::stream).collect(Collectors.toUnmodifiableSet());
    }

    /**
     * Settings for a log connection: each setting also for every kind of client that knows it, where it takes
     * precedence.
     */
    static Map<String, String> expand(Map<String, String> settings) {
        Map<String, String> expanded = new HashMap<>();
        settings.forEach((key, value) -> {
            if (key.startsWith(PLUGIN)) {
                expanded.put(key.substring(PLUGIN.length()), value);
                return;
            }
            expanded.put(key, value);
            if (NAMES.keySet().stream().noneMatch(key::startsWith) && !key.equals(REPORTERS)) {
                NAMES.forEach((prefix, names) -> {
                    if (names.contains(key)) {
                        expanded.putIfAbsent(prefix + key, value);
                    }
                });
            }
        });
        settings.forEach((key, value) -> { // a setting for one kind overrides one for all
            if (NAMES.keySet().stream().anyMatch(key::startsWith)) {
                expanded.put(key, value);
            }
        });
        return expanded;
    }
}
