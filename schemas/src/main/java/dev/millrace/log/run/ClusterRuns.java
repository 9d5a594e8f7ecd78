package dev.millrace.log.run;

import dev.millrace.log.ClientKind;
import dev.millrace.log.registry.LogSchemaRegistry;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.registry.RestSchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistryException;
import dev.millrace.schemas.run.ManifestChain;
import dev.millrace.schemas.run.ManifestChain.Link;
import dev.millrace.schemas.run.RunSchemas;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NavigableSet;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.InvalidRequestException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/**
 * Finds the runs on a cluster by their claims; lists, stops and deletes them.
 *
 * <p>A run has a live role if a group has members, a transaction is open, or its newest record is younger than {@value
 * #RECENT_SECONDS} s. A learner, admission or evaluator that has waited longer for work is not seen.
 *
 * <p>Every call ends within {@link TopicsConfig#timeoutMs()}. Used by one thread.
 */
public final class ClusterRuns implements AutoCloseable {
    /** Age of a run's newest record up to which a role counts as live. */
    public static final int RECENT_SECONDS = 30;

    /** Name of a topic that may hold a claim: the run's prefix, then {@code run}. */
    private static final Pattern CLAIM = Pattern.compile("(.+)run");

    private static final Pattern USUAL = Pattern.compile("millrace\\.[A-Za-z0-9._-]{1,140}\\.");
    private static final String EXPIRATION = "transactional.id.expiration.ms";
    /** Offsets to read back from the end of {@code policy-versions}; a version has a record and a commit marker. */
    private static final int TAIL = 20;

    private static final long PAUSE_MS = 50;

    private static final Set<String> ROLES =
            Set.of("learner", "generator", "scorer", "topology", "evaluator", "import", "preflight");

    private final Map<String, Object> client;
    private final TopicsConfig config;
    private final Clock clock;
    private final TopicAdministration administration;
    private final Admin admin;
    private final TopicAdministration.ClusterCalls calls;
    private final Optional<SchemaRegistry> registry;

    /**
     * Resources of a run on its cluster.
     *
     * @param groups consumer groups, including those that record the owner of a transactional id
     * @param others topics, groups and ids under the run's prefix that no role creates
     */
    public record Holdings(
            NavigableSet<String> topics,
            NavigableSet<String> groups,
            NavigableSet<String> transactionalIds,
            NavigableSet<String> subjects,
            NavigableSet<String> others) {
        /** Whether there is nothing to delete. */
        public boolean isEmpty() {
            return topics.isEmpty() && groups.isEmpty() && subjects.isEmpty();
        }
    }

    /**
     * A run on a cluster.
     *
     * @param claim empty if it is gone or unreadable
     * @param signs evidence of live roles, a clause each
     * @param newestVersion of its newest epoch's chain; empty without a version or claim
     * @param lastRecordMs time of its newest record; empty without records
     * @param bytes on the brokers' disks, all copies together; empty if unknown
     */
    public record ClusterRun(
            RunTopics topics,
            Optional<ClaimedRun> claim,
            Holdings holdings,
            List<String> signs,
            OptionalLong newestVersion,
            OptionalLong lastRecordMs,
            OptionalLong bytes) {
        /** Required topics that do not exist. */
        public List<String> missing() {
            return topics.required().stream()
                    .filter(topic -> !holdings.topics().contains(topic))
                    .toList();
        }
    }

    /**
     * Connects.
     *
     * @param client how to reach the cluster
     * @param schemaRegistryUrl of a registry that speaks Confluent's protocol; empty if schemas are on the log
     * @throws LogSetupException if the cluster does not answer
     */
    public ClusterRuns(Map<String, Object> client, TopicsConfig config, String schemaRegistryUrl, Clock clock) {
        this.client = client;
        this.config = config;
        this.clock = clock;
        this.administration = new TopicAdministration(client, config);
        this.admin = administration.admin();
        this.calls = administration.calls();
        try {
            administration.requireReachable();
            boolean hasSchemas = !schemaRegistryUrl.isEmpty()
                    || !administration.existing(List.of(config.schemasTopic())).isEmpty();
            this.registry = hasSchemas
                    ? Optional.of(RunLog.registry(client, config, schemaRegistryUrl, true))
                    : Optional.empty();
        } catch (RuntimeException e) {
            administration.close();
            throw e;
        }
    }

    /** Every run of the cluster that this client may see, by prefix. */
    public List<ClusterRun> all() {
        Cluster cluster = look();
        return cluster.prefixes().stream()
                .map(prefix -> at(new RunTopics(prefix), cluster))
                .toList();
    }

    /**
     * A topic of a run on the cluster.
     *
     * @param inSync fewest in-sync replicas of any partition
     * @param settings those a run depends on and those set on the topic; empty if the client may not see them
     * @param bytes on the brokers' disks, all copies together; empty if unknown
     */
    public record RunTopic(
            String name,
            int partitions,
            int replicas,
            int inSync,
            SortedMap<String, String> settings,
            OptionalLong bytes) {}

    /** The topics of a run, in the order of their names. */
    public List<RunTopic> topics(ClusterRun run) {
        Set<String> names = run.holdings().topics();
        Optional<Map<String, Long>> bytes = bytes();
        Map<ConfigResource, KafkaFuture<Config>> configs = admin.describeConfigs(names.stream()
                        .map(name -> new ConfigResource(ConfigResource.Type.TOPIC, name))
                        .toList())
                .values();
        List<RunTopic> topics = new ArrayList<>();
        new TreeMap<>(calls.required(admin.describeTopics(names).allTopicNames(), "describe topics " + names))
                .forEach((name, shape) -> topics.add(new RunTopic(
                        name,
                        shape.partitions().size(),
                        shape.partitions().stream()
                                .mapToInt(partition -> partition.replicas().size())
                                .min()
                                .orElseThrow(),
                        shape.partitions().stream()
                                .mapToInt(partition -> partition.isr().size())
                                .min()
                                .orElseThrow(),
                        settings(Objects.requireNonNull(
                                configs.get(new ConfigResource(ConfigResource.Type.TOPIC, name)), name)),
                        bytes.map(all -> OptionalLong.of(all.getOrDefault(name, 0L)))
                                .orElse(OptionalLong.empty()))));
        return topics;
    }

    private SortedMap<String, String> settings(KafkaFuture<Config> described) {
        SortedMap<String, String> settings = new TreeMap<>();
        try {
            calls.answer(described, "describe the settings of topics").entries().stream()
                    .filter(entry -> TopicDifference.SETTINGS.contains(entry.name())
                            || entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG)
                    .forEach(entry -> settings.put(entry.name(), String.valueOf(entry.value())));
        } catch (ExecutionException e) { // it takes a right of its own
            settings.clear();
        }
        return settings;
    }

    /** The run with these topics, or its remains; without any, its holdings are empty. */
    public ClusterRun at(RunTopics topics) {
        return at(topics, look());
    }

    /**
     * Deletes topics, consumer groups, settings of groups and schema subjects of a run. The topic of its claim comes last, so
     * that an interrupted deletion can be repeated. Transactional ids stay: Kafka has no request to delete one.
     *
     * @return the deleted resources
     * @throws LogSetupException if a role is live, or the cluster refuses
     */
    public Holdings delete(RunTopics topics) {
        ClusterRun run = at(topics);
        requireNoLife(run);
        Holdings held = run.holdings();
        deleteTopics(held.topics().stream()
                .filter(topic -> !topic.equals(topics.run()))
                .toList());
        admin.deleteConsumerGroups(held.groups())
                .deletedGroups()
                .forEach((group, deleted) ->
                        done(deleted, "delete consumer group " + group, GroupIdNotFoundException.class));
        deleteGroupSettings(topics, held.groups());
        if (!held.subjects().isEmpty()) {
            deleteSubjects(held.subjects());
        }
        deleteTopics(held.topics().stream().filter(topics.run()::equals).toList());
        return held;
    }

    /**
     * Writes the request to stop, which every role of Millrace follows. Programs that do not read the claim have to be stopped
     * on their machines.
     *
     * @throws LogSetupException if there is no run under these topics, or the cluster refuses
     */
    public void stop(RunTopics topics) {
        if (registry.isEmpty()) {
            throw new LogSetupException("there is no topic " + config.schemasTopic()
                    + " with the schemas of a run, so the stop request cannot be written; name the registry with"
                    + " --set run.schema_registry_url=URL");
        }
        new RunClaims(client, topics, registry.get(), config.timeoutMs()).stop(clock);
    }

    /** For how long the cluster keeps a transactional id after its last use; empty if it does not say. */
    public OptionalLong transactionalIdsKeptMs() {
        try {
            Node any = calls.answer(admin.describeCluster().nodes(), "name its brokers")
                    .iterator()
                    .next();
            ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, any.idString());
            Config settings = calls.answer(
                            admin.describeConfigs(List.of(broker)).all(), "describe the settings of a broker")
                    .values()
                    .iterator()
                    .next();
            return OptionalLong.of(Long.parseLong(settings.get(EXPIRATION).value()));
        } catch (ExecutionException e) { // it takes a right of its own
            return OptionalLong.empty();
        }
    }

    @Override
    public void close() {
        registry.ifPresent(SchemaRegistry::close);
        administration.close();
    }

    private static void requireNoLife(ClusterRun run) {
        if (!run.signs().isEmpty()) {
            throw new LogSetupException("the run under the topic prefix '"
                    + run.topics().prefix() + "' is alive: "
                    + String.join("; ", run.signs())
                    + "; stop its roles, and delete it when the newest record is older than " + RECENT_SECONDS + " s");
        }
    }

    private void deleteTopics(List<String> names) {
        admin.deleteTopics(names)
                .topicNameValues()
                .forEach((name, deleted) ->
                        done(deleted, "delete topic " + name, UnknownTopicOrPartitionException.class));
        long deadline =
                System.nanoTime() + Duration.ofMillis(config.timeoutMs()).toNanos();
        while (!administration.existing(names).isEmpty()) {
            if (System.nanoTime() - deadline > 0) {
                throw new LogSetupException("topics " + administration.existing(names)
                        + " were deleted and are still there after timeout_ms=" + config.timeoutMs()
                        + "; repeat the command");
            }
            try {
                Thread.sleep(PAUSE_MS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new LogSetupException("interrupted while topics were deleted", e);
            }
        }
    }

    /** Waits for a deletion; a resource that is already gone counts as deleted. */
    private void done(KafkaFuture<Void> deleted, String what, Class<? extends Throwable> gone) {
        try {
            calls.answer(deleted, what);
        } catch (ExecutionException e) {
            Throwable cause = TopicAdministration.ClusterCalls.cause(e);
            if (!gone.isInstance(cause)) {
                throw new LogSetupException(
                        "the cluster could not " + what + ": " + cause.getMessage()
                                + "; repeat the command to delete the rest",
                        cause);
            }
        }
    }

    /** Deletes settings of groups, also of a deleted streams group, since a broker keeps them. */
    private void deleteGroupSettings(RunTopics topics, Set<String> groups) {
        List<ConfigResource> asked = Stream.concat(groups.stream(), Stream.of(topics.prefix() + "topology"))
                .distinct()
                .map(group -> new ConfigResource(ConfigResource.Type.GROUP, group))
                .toList();
        Map<ConfigResource, Config> described;
        try {
            described = calls.required(admin.describeConfigs(asked).all(), "describe the settings of consumer groups");
        } catch (LogSetupException e) {
            if (e.getCause() instanceof InvalidRequestException) {
                return; // a broker of 3.9 has no settings of groups
            }
            throw e;
        }
        Map<ConfigResource, Collection<AlterConfigOp>> changes = new HashMap<>();
        described.forEach((group, settings) -> {
            List<AlterConfigOp> deletions = settings.entries().stream()
                    .filter(entry -> entry.source() == ConfigEntry.ConfigSource.DYNAMIC_GROUP_CONFIG)
                    .map(entry -> new AlterConfigOp(new ConfigEntry(entry.name(), ""), AlterConfigOp.OpType.DELETE))
                    .toList();
            if (!deletions.isEmpty()) {
                changes.put(group, deletions);
            }
        });
        calls.required(admin.incrementalAlterConfigs(changes).all(), "delete the settings of consumer groups");
    }

    private void deleteSubjects(Set<String> subjects) {
        try {
            SchemaRegistry there = registry.orElseThrow();
            if (there instanceof LogSchemaRegistry log) {
                log.remove(subjects);
            } else if (there instanceof RestSchemaRegistry rest) {
                subjects.forEach(rest::remove);
            }
        } catch (SchemaRegistryException e) {
            throw new LogSetupException(String.valueOf(e.getMessage()), e);
        }
    }

    private Set<String> allSubjects() {
        try {
            return registry.map(there -> there instanceof LogSchemaRegistry log
                            ? Set.copyOf(log.contents().subjects())
                            : there instanceof RestSchemaRegistry rest ? rest.subjects() : Set.<String>of())
                    .orElse(Set.of());
        } catch (SchemaRegistryException e) {
            throw new LogSetupException(String.valueOf(e.getMessage()), e);
        }
    }

    /**
     * The cluster at one moment.
     *
     * @param groups to whether they have members
     * @param transactionalIds to whether a transaction is open
     * @param bytes by topic; empty if the cluster does not say
     * @param prefixes of topics that hold a claim
     */
    private record Cluster(
            Set<String> topics,
            Map<String, Boolean> groups,
            Map<String, Boolean> transactionalIds,
            Optional<Map<String, Long>> bytes,
            Set<String> subjects,
            NavigableSet<String> prefixes) {}

    private Cluster look() {
        Set<String> topics = calls.required(admin.listTopics().names(), "list its topics");
        Map<String, Boolean> groups = new TreeMap<>();
        calls.required(admin.listGroups().all(), "list its groups")
                .forEach(group -> groups.put(
                        group.groupId(),
                        group.groupState()
                                .filter(state -> state == GroupState.EMPTY || state == GroupState.DEAD)
                                .isEmpty()));
        Map<String, Boolean> transactionalIds = new TreeMap<>();
        calls.required(admin.listTransactions().all(), "list its transactions")
                .forEach(listed -> transactionalIds.put(
                        listed.transactionalId(),
                        listed.state() == TransactionState.ONGOING
                                || listed.state() == TransactionState.PREPARE_COMMIT
                                || listed.state() == TransactionState.PREPARE_ABORT));
        return new Cluster(topics, groups, transactionalIds, bytes(), allSubjects(), prefixes(topics));
    }

    private static NavigableSet<String> prefixes(Set<String> topics) {
        return topics.stream()
                .map(CLAIM::matcher)
                .filter(Matcher::matches)
                .map(found -> found.group(1))
                .filter(prefix -> USUAL.matcher(prefix).matches()
                        || RunTopics.isPrefix(prefix) && topics.contains(new RunTopics(prefix).policyVersions()))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private Optional<Map<String, Long>> bytes() {
        try {
            List<Integer> brokers = calls.answer(admin.describeCluster().nodes(), "name its brokers").stream()
                    .map(Node::id)
                    .toList();
            Map<String, Long> bytes = new HashMap<>();
            for (Map<String, LogDirDescription> broker : calls.answer(
                            admin.describeLogDirs(brokers).allDescriptions(), "describe its disks")
                    .values()) {
                broker.values()
                        .forEach(disk -> disk.replicaInfos()
                                .forEach((partition, copy) -> bytes.merge(partition.topic(), copy.size(), Long::sum)));
            }
            return Optional.of(bytes);
        } catch (ExecutionException e) { // it takes a right on the cluster
            return Optional.empty();
        }
    }

    private ClusterRun at(RunTopics topics, Cluster cluster) {
        Holdings listed = holdings(topics, cluster);
        NavigableMap<String, Long> written = lastRecordMs(listed.topics());
        Holdings held = new Holdings(
                written.navigableKeySet(),
                listed.groups(),
                listed.transactionalIds(),
                listed.subjects(),
                listed.others());
        OptionalLong lastRecordMs = written.values().stream()
                .mapToLong(time -> time)
                .filter(time -> time >= 0)
                .max();
        Optional<ClaimedRun> claim = claim(topics, held.topics());
        return new ClusterRun(
                topics,
                claim,
                held,
                signs(held, cluster, lastRecordMs),
                claim.filter(found -> held.topics().contains(topics.policyVersions()))
                        .map(found -> newestVersion(topics, found))
                        .orElse(OptionalLong.empty()),
                lastRecordMs,
                cluster.bytes()
                        .map(bytes -> OptionalLong.of(held.topics().stream()
                                .mapToLong(topic -> bytes.getOrDefault(topic, 0L))
                                .sum()))
                        .orElse(OptionalLong.empty()));
    }

    private Holdings holdings(RunTopics topics, Cluster cluster) {
        Predicate<String> own = name -> isOwn(topics, name, cluster.prefixes());
        Predicate<String> isTopic = name -> topics.all().contains(name)
                || own.test(name)
                        && Stream.of("topology-", "preflight-")
                                .anyMatch(begin -> name.startsWith(topics.prefix() + begin));
        Set<String> subjects = RunSchemas.bySubject(topics).keySet();
        NavigableSet<String> others = new TreeSet<>();
        Stream.of(
                        cluster.topics(),
                        cluster.groups().keySet(),
                        cluster.transactionalIds().keySet())
                .flatMap(Collection::stream)
                .filter(name -> isUnder(topics, name, cluster.prefixes()) && !own.test(name))
                .forEach(others::add);
        cluster.topics().stream()
                .filter(name -> own.test(name) && !isTopic.test(name))
                .forEach(others::add);
        return new Holdings(
                sorted(cluster.topics(), isTopic),
                sorted(cluster.groups().keySet(), own),
                sorted(cluster.transactionalIds().keySet(), own),
                sorted(cluster.subjects(), subjects::contains),
                others);
    }

    private static NavigableSet<String> sorted(Set<String> names, Predicate<String> chosen) {
        return names.stream().filter(chosen).collect(Collectors.toCollection(TreeSet::new));
    }

    /** Whether a name begins with the run's prefix, and not with a longer one of another run. */
    private static boolean isUnder(RunTopics topics, String name, Set<String> prefixes) {
        return name.startsWith(topics.prefix())
                && prefixes.stream()
                        .noneMatch(other -> other.length() > topics.prefix().length()
                                && other.startsWith(topics.prefix())
                                && name.startsWith(other));
    }

    /** Whether a topic, group or id belongs to the run: its prefix, then the name of a topic or role. */
    private static boolean isOwn(RunTopics topics, String name, Set<String> prefixes) {
        if (!isUnder(topics, name, prefixes)) {
            return false;
        }
        String rest = name.substring(topics.prefix().length());
        return Stream.concat(
                        ROLES.stream(),
                        topics.all().stream()
                                .map(topic -> topic.substring(topics.prefix().length()))
                                .flatMap(topic -> Stream.of(topic, topic.replaceFirst("-scores$", ""))))
                .anyMatch(word -> rest.equals(word) || rest.startsWith(word + "-") || rest.startsWith(word + "."));
    }

    private Optional<ClaimedRun> claim(RunTopics topics, Set<String> there) {
        if (!there.contains(topics.run()) || registry.isEmpty()) {
            return Optional.empty();
        }
        try {
            return new RunClaims(client, topics, registry.get(), config.timeoutMs()).found();
        } catch (MalformedRecordException e) { // the schemas are in another registry, or the topic is another program's
            return Optional.empty();
        }
    }

    private List<String> signs(Holdings held, Cluster cluster, OptionalLong lastRecordMs) {
        List<String> signs = new ArrayList<>();
        held.groups().stream()
                .filter(group -> cluster.groups().getOrDefault(group, false))
                .forEach(group -> signs.add("group " + group + " has members"));
        held.transactionalIds().stream()
                .filter(id -> cluster.transactionalIds().getOrDefault(id, false))
                .forEach(id -> signs.add("a transaction of " + id + " is open"));
        lastRecordMs.ifPresent(time -> {
            long seconds = Math.floorDiv(clock.millis() - time, 1000L);
            if (seconds < RECENT_SECONDS) {
                signs.add("its newest record is " + Math.max(0, seconds) + " s old");
            }
        });
        return signs;
    }

    /** By topic, -1 without records; topics that are deleted meanwhile are left out. */
    private NavigableMap<String, Long> lastRecordMs(Set<String> topics) {
        NavigableMap<String, Long> newest = new TreeMap<>();
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        admin.describeTopics(topics)
                .topicNameValues()
                .forEach((name, described) -> ofExisting(described, "describe topic " + name)
                        .ifPresent(topic -> {
                            newest.put(name, -1L);
                            topic.partitions()
                                    .forEach(partition -> asked.put(
                                            new TopicPartition(name, partition.partition()),
                                            OffsetSpec.maxTimestamp()));
                        }));
        ListOffsetsResult offsets = admin.listOffsets(asked);
        asked.keySet()
                .forEach(partition -> ofExisting(
                                offsets.partitionResult(partition), "say when " + partition + " was written last")
                        .ifPresentOrElse(
                                found -> newest.computeIfPresent(
                                        partition.topic(), (name, time) -> Math.max(time, found.timestamp())),
                                () -> newest.remove(partition.topic())));
        return newest;
    }

    /** Empty where the topic is gone. */
    private <T> Optional<T> ofExisting(KafkaFuture<T> future, String what) {
        try {
            return Optional.of(calls.answer(future, what));
        } catch (ExecutionException e) {
            if (TopicAdministration.ClusterCalls.cause(e) instanceof UnknownTopicOrPartitionException) {
                return Optional.empty();
            }
            throw TopicAdministration.ClusterCalls.refused(e, what);
        }
    }

    private OptionalLong newestVersion(RunTopics topics, ClaimedRun claim) {
        Map<String, Object> reading = ClientKind.CONSUMER.settings(
                client,
                Map.of(
                        "client.id",
                        "runs",
                        "allow.auto.create.topics",
                        false,
                        "default.api.timeout.ms",
                        Math.toIntExact(config.timeoutMs())));
        TopicPartition partition = new TopicPartition(topics.policyVersions(), 0);
        Duration limit = Duration.ofMillis(config.timeoutMs());
        try (LogReader log = LogReader.with(reading)) {
            long begin = log.begin(partition, limit);
            long end = log.end(partition, limit);
            List<Link> tail = end - TAIL > begin ? links(log, topics, claim, end - TAIL, end) : List.of();
            if (!tail.isEmpty()) {
                Link first = tail.get(0);
                ManifestChain<Link> chain = new ManifestChain<>(Optional.empty());
                chain.begin(first, first);
                if (tail.stream().allMatch(link -> link.version() >= first.version() && isTaken(chain, link))) {
                    return chain.newest();
                }
            }
            ManifestChain<Link> whole =
                    new ManifestChain<>(claim.lineage(claim.run().epoch()).parent());
            links(log, topics, claim, begin, end).forEach(link -> whole.add(link, link));
            return whole.newest();
        } catch (KafkaException e) {
            throw new LogSetupException("the versions on " + partition + " cannot be read: " + e.getMessage(), e);
        }
    }

    /** Whether a manifest extends the chain, or is a copy of one on it. */
    private static boolean isTaken(ManifestChain<Link> chain, Link link) {
        return chain.add(link, link).whyNot().isEmpty() && !chain.isAhead(link.version());
    }

    /** Of the manifests of the run's newest epoch. */
    private List<Link> links(LogReader log, RunTopics topics, ClaimedRun claim, long from, long end) {
        var versions = AvroSerde.of(PolicyVersion.class, registry.orElseThrow()).deserializer();
        TopicPartition partition = new TopicPartition(topics.policyVersions(), 0);
        List<Link> links = new ArrayList<>();
        log.from(partition, from);
        log.readTo(Map.of(partition, end), ReadLimit.within(Duration.ofMillis(config.timeoutMs())), record -> {
            try {
                PolicyVersion read = versions.deserialize(record.topic(), record.value());
                if (read != null
                        && claim.run().owns(read.getRunId(), read.getEpoch())
                        && claim.run().policyId().equals(read.getPolicyId())) {
                    links.add(Link.of(read));
                }
            } catch (MalformedRecordException e) {
                // refused by the roles too, and no version of the run
            }
        });
        return links;
    }
}
