package dev.millrace.log;

import dev.millrace.log.scan.ClusterScan;
import dev.millrace.log.scan.RunRecords;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/**
 * What a role needs to reach the log of its run: how to connect, where, as which run, the schemas, for how long to go on without
 * it, and where to say what keeps the run from getting on.
 *
 * @param clientProperties Kafka client settings, {@code bootstrap.servers} at least. Prefixes {@code consumer.},
 *     {@code producer.}, {@code admin.} and {@code streams.} limit a setting to one kind of client; it overrides a role's own
 * @param lineage where the run's epoch comes from
 * @param registry shared; its creator closes it
 * @param whereabouts command-line options that find this run, such as {@code --run-dir runs/r1}
 * @param patience for how long a role continues while the cluster is away
 * @param sync returns when the versions on the log that can be read now, and what they rest on, survive a power loss; by default at
 *     once, since a cluster has copies for that
 */
public record LogConnection(
        Map<String, Object> clientProperties,
        RunTopics topics,
        RunIdentity run,
        EpochLineage lineage,
        SchemaRegistry registry,
        String whereabouts,
        Duration patience,
        Alarms alarms,
        Runnable sync)
        implements RunRecords {
    /** The clients' own connections.max.idle.ms. */
    public static final int CLIENTS_IDLE_MS = 540_000;

    /**
     * Settings of every producer that writes transactions. The broker refuses the first request of a transaction while the
     * last one is still being marked; with more requests in flight, what follows would be refused as out of order.
     */
    public static final Map<String, Object> TRANSACTIONAL =
            Map.of("max.in.flight.requests.per.connection", 1, "retry.backoff.ms", 20);

    /** What {@code run.patience_seconds} is unless somebody says otherwise. */
    public static final Duration PATIENCE = Duration.ofMinutes(10);

    /** To a run in its first epoch. */
    public LogConnection(
            Map<String, Object> clientProperties, RunTopics topics, RunIdentity run, SchemaRegistry registry) {
        this(clientProperties, topics, run, EpochLineage.FIRST, registry);
    }

    public LogConnection {
        clientProperties = Map.copyOf(clientProperties);
        if (!clientProperties.containsKey("bootstrap.servers")) {
            throw new IllegalArgumentException("a log connection needs bootstrap.servers");
        }
    }

    /** Of a run that is found on its cluster, by its id or topic prefix; with the usual patience, and alarms of its own. */
    public LogConnection(
            Map<String, Object> clientProperties,
            RunTopics topics,
            RunIdentity run,
            EpochLineage lineage,
            SchemaRegistry registry) {
        this(
                clientProperties,
                topics,
                run,
                lineage,
                registry,
                onCluster(clientProperties, topics, run),
                PATIENCE,
                new Alarms(),
                () -> {});
    }

    private static String onCluster(Map<String, Object> clientProperties, RunTopics topics, RunIdentity run) {
        boolean usual = topics.prefix().equals("millrace." + run.runId() + ".");
        return "--bootstrap-servers " + clientProperties.get("bootstrap.servers")
                + (usual ? " --run " + run.runId() : " --topic-prefix " + topics.prefix());
    }

    public LogConnection at(RunIdentity otherRun, EpochLineage otherLineage) {
        return new LogConnection(
                clientProperties, topics, otherRun, otherLineage, registry, whereabouts, patience, alarms, sync);
    }

    /** The same log, which commands find by other options. */
    public LogConnection reachedBy(String options) {
        return new LogConnection(clientProperties, topics, run, lineage, registry, options, patience, alarms, sync);
    }

    /** The same log, where {@code newSync} makes its versions safe. */
    public LogConnection syncedBy(Runnable newSync) {
        return new LogConnection(
                clientProperties, topics, run, lineage, registry, whereabouts, patience, alarms, newSync);
    }

    /** A command about this run as a person can enter it, for messages that name a way out: {@code millrace repair --run-dir runs/r1}. */
    public String command(String name) {
        return "millrace " + name + " " + whereabouts;
    }

    public LogConnection withClient(Map<String, Object> settings) {
        return new LogConnection(settings, topics, run, lineage, registry, whereabouts, patience, alarms, sync);
    }

    /**
     * The same for clients of one purpose: their ids begin with the names that were given so, as in {@code learner-retention}.
     */
    public LogConnection as(String purpose) {
        Map<String, Object> named = new HashMap<>(clientProperties);
        named.merge("client.id", purpose, (before, added) -> before.equals(added) ? before : before + "-" + added);
        return withClient(named);
    }

    /** A limit that somebody set; the patience where it is 0. */
    public Duration limit(long limitMs) {
        return limitMs == 0 ? patience : Duration.ofMillis(limitMs);
    }

    public LogConnection withPatience(Duration other) {
        return new LogConnection(
                clientProperties,
                topics,
                run,
                lineage,
                RetryingRegistry.over(registry, other, alarms),
                whereabouts,
                other,
                alarms,
                sync);
    }

    /** Who waits for a schema registry that is away waits no longer, now or later: the process is asked to stop. */
    public void stopWaiting() {
        if (registry instanceof RetryingRegistry patient) {
            patient.stopWaiting();
        }
    }

    @Override
    public ClusterScan scan(Duration idle) {
        return new ClusterScan(this, idle);
    }

    /** The common settings with others put over them. */
    public Map<String, Object> with(Map<String, Object> overrides) {
        Map<String, Object> merged = ClientKind.common(clientProperties);
        merged.putAll(overrides);
        return merged;
    }

    /** Settings of a consumer: the common ones, over them a role's own, over these what was set for consumers. */
    public Map<String, Object> consumer(Map<String, Object> ofRole) {
        Map<String, Object> withPatience = new HashMap<>(ofRole);
        // requests other than fetches, such as for offsets, then wait as long as reading does
        withPatience.putIfAbsent("default.api.timeout.ms", Math.toIntExact(patience.toMillis()));
        // a member that may work so long without a poll needs its coordinator's connection for as long
        if (ofRole.get("max.poll.interval.ms") instanceof Integer longestTurnMs) {
            withPatience.put("connections.max.idle.ms", Math.max(longestTurnMs, CLIENTS_IDLE_MS));
        }
        return ClientKind.CONSUMER.settings(clientProperties, withPatience);
    }

    /** Settings of a producer, as for a consumer; one with a {@code transactional.id} has {@link #TRANSACTIONAL} too. */
    public Map<String, Object> producer(Map<String, Object> ofRole) {
        Map<String, Object> withOrder =
                ofRole.containsKey("transactional.id") ? new HashMap<>(TRANSACTIONAL) : new HashMap<>();
        withOrder.putAll(ofRole);
        return ClientKind.PRODUCER.settings(clientProperties, withOrder);
    }

    public Map<String, Object> admin() {
        return ClientKind.ADMIN.settings(clientProperties, Map.of());
    }

    /** Settings of the stream engine, which knows the prefixes of its clients itself. */
    public Map<String, Object> streams(Map<String, Object> ofRole) {
        Map<String, Object> merged = ClientKind.STREAMS.settings(clientProperties, ofRole);
        clientProperties.forEach((key, value) -> {
            if (ClientKind.isOfOne(key) && !ClientKind.STREAMS.owns(key)) {
                merged.put(key, value);
            }
        });
        merged.remove("client.id"); // the engine gives each of its clients one of its own
        return merged;
    }

    /** Without the secrets that client settings may hold. */
    @Override
    public String toString() {
        return "LogConnection[clientProperties=" + SecretSettings.shown(clientProperties) + ", topics=" + topics
                + ", run=" + run + ", registry=" + registry + ", patience=" + patience + "]";
    }

    /**
     * A consumer group, transactional or application id of this run: {@code <prefix><role>}, as its topics are called
     * {@code <prefix><name>}. A prefix belongs to one run, so the run's id need not stand in it.
     */
    public String scoped(String role) {
        return topics.prefix() + role;
    }

    /**
     * A consumer group or application id of this run's epoch: as {@link #scoped}, and from epoch 1 on with the epoch, since
     * what an older epoch has read is no progress of a younger one.
     */
    public String group(String role) {
        return topics.group(role, run.epoch());
    }
}
