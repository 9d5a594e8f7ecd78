package dev.millrace.log.run;

import dev.millrace.log.ClientKind;
import dev.millrace.schemas.run.RunTopics;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.resource.ResourceType;

/**
 * Creates and checks the topics of a run.
 *
 * <p>Every call has a limit of time and refuses with a {@link LogSetupException}. An existing topic is never
 * altered, since its operator may have had reasons. Thread-safe.
 */
public final class TopicAdministration implements AutoCloseable {
    private static final long RETRY_MS = 50;

    private final TopicsConfig config;
    private final String brokers;
    private final ConnectionFailure failure;
    private final Admin admin;
    private final ClusterCalls calls;

    /**
     * Opens a connection, without waiting for an answer yet.
     *
     * @param clientProperties {@code bootstrap.servers} and the other settings of the connection
     */
    public TopicAdministration(Map<String, Object> clientProperties, TopicsConfig config) {
        this.config = config;
        this.brokers = String.valueOf(clientProperties.get("bootstrap.servers"));
        this.failure = new ConnectionFailure(clientProperties, config.timeoutMs());
        this.calls = new ClusterCalls(config.timeoutMs());
        Map<String, Object> properties = new HashMap<>(clientProperties);
        properties.put("client.id", ClientKind.id(clientProperties, "topics"));
        properties.put("default.api.timeout.ms", Math.toIntExact(config.timeoutMs()));
        properties.put("request.timeout.ms", Math.toIntExact(config.timeoutMs()));
        try {
            this.admin = Admin.create(properties);
        } catch (KafkaException e) {
            throw failure.made(e);
        }
    }

    /**
     * Waits until a broker answers.
     *
     * @throws BrokerUnavailableException if none does within the limit
     * @throws LogSetupException if one refuses
     */
    public void requireReachable() {
        try {
            calls.answer(admin.describeCluster().clusterId(), "answer");
        } catch (ExecutionException e) {
            throw failure.asked(ClusterCalls.cause(e));
        } catch (LogSetupException e) {
            throw e.getCause() instanceof TimeoutException late ? failure.asked(late) : e;
        }
    }

    /**
     * Those of the names that are topics of the cluster.
     *
     * @throws LogSetupException also if the account may not see one of them, whether it is there or not
     */
    public Set<String> existing(Collection<String> names) {
        Set<String> there = new HashSet<>();
        TreeMap<String, AuthorizationException> unseen = new TreeMap<>();
        admin.describeTopics(names).topicNameValues().forEach((name, described) -> {
            try {
                calls.answer(described, "describe topic " + name);
                there.add(name);
            } catch (ExecutionException e) {
                if (e.getCause() instanceof AuthorizationException refusal) {
                    unseen.put(name, refusal);
                } else if (!(e.getCause() instanceof UnknownTopicOrPartitionException)) {
                    throw refused("see whether there is a topic " + name, name, AclOperation.READ, e);
                }
            }
        });
        if (!unseen.isEmpty()) {
            String first = unseen.firstKey();
            String last = unseen.lastKey();
            int common = 0;
            while (common < Math.min(first.length(), last.length()) && first.charAt(common) == last.charAt(common)) {
                common++;
            }
            Right right = unseen.size() == 1
                    ? Right.on(ResourceType.TOPIC, first, AclOperation.READ)
                    : Right.under(ResourceType.TOPIC, first.substring(0, common), AclOperation.READ);
            throw new LogSetupException(
                    "cannot see whether there is a topic " + first + ": " + right.lacking(brokers),
                    unseen.firstEntry().getValue());
        }
        return there;
    }

    /** Tries rights as the account of the client settings, and changes nothing of a run. */
    public CheckedRights tried(RunTopics topics, Collection<Right> rights) {
        return CheckedRights.of(admin, calls, topics, rights);
    }

    /** With the command that grants it, if it is the right to it that is missing. */
    private LogSetupException refused(String what, String topic, AclOperation operation, ExecutionException e) {
        Throwable cause = ClusterCalls.cause(e);
        return new LogSetupException(
                cause instanceof AuthorizationException
                        ? "cannot " + what + ": "
                                + Right.on(ResourceType.TOPIC, topic, operation).lacking(brokers)
                        : "the cluster could not " + what + ": " + cause.getMessage(),
                cause);
    }

    public String clusterId() {
        return calls.required(admin.describeCluster().clusterId(), "name itself");
    }

    /** The identities that the cluster gave to topics when they were made, by name; one that is not there is left out. */
    public Map<String, String> ids(Collection<String> names) {
        Map<String, String> ids = new TreeMap<>();
        admin.describeTopics(names).topicNameValues().forEach((name, described) -> {
            try {
                ids.put(
                        name,
                        calls.answer(described, "describe topic " + name)
                                .topicId()
                                .toString());
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof UnknownTopicOrPartitionException)) {
                    throw refused("describe topic " + name, name, AclOperation.READ, e);
                }
            }
        });
        return ids;
    }

    /** End offset of each partition of these topics, committed or not, by {@code topic-partition}; they must exist. */
    public Map<String, Long> ends(Collection<String> topics) {
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        calls.required(admin.describeTopics(topics).allTopicNames(), "describe topics " + topics)
                .values()
                .forEach(topic -> topic.partitions()
                        .forEach(partition -> asked.put(
                                new TopicPartition(topic.name(), partition.partition()), OffsetSpec.latest())));
        Map<String, Long> ends = new TreeMap<>();
        calls.required(admin.listOffsets(asked).all(), "say where " + topics + " end")
                .forEach((partition, end) -> ends.put(partition.toString(), end.offset()));
        return ends;
    }

    /** What a consumer group has committed, by {@code topic-partition}; empty if there is no such group. */
    public Map<String, Long> committed(String group) {
        Map<String, Long> offsets = new TreeMap<>();
        calls.required(
                        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata(),
                        "say what group " + group + " has committed")
                .forEach((partition, offset) -> {
                    if (offset != null) {
                        offsets.put(partition.toString(), offset.offset());
                    }
                });
        return offsets;
    }

    /**
     * Fences the writers of these transactional ids: aborts open transactions and refuses later ones.
     *
     * @param isMeant which of the cluster's transactional ids
     * @return those that were shut out
     */
    public Set<String> fence(Predicate<String> isMeant) {
        Set<String> ids = new TreeSet<>();
        calls.required(admin.listTransactions().all(), "list its transactions")
                .forEach(transaction -> ids.add(transaction.transactionalId()));
        ids.removeIf(isMeant.negate());
        if (!ids.isEmpty()) {
            calls.required(admin.fenceProducers(ids).all(), "fence the producers of " + ids);
        }
        return ids;
    }

    /**
     * Every topic that the roles of a run create, as they create it: the claim's first, that of the schemas last.
     *
     * @param partnerTopics those of {@link RunTopics#ofPartners} that its topology joins
     * @param keepsSchemas whether the schemas are on the log, and in no registry
     */
    public static List<TopicSettings> ofRun(
            TopicsConfig config, RunTopics topics, Set<String> partnerTopics, boolean keepsSchemas) {
        RunTopicSettings settings = new RunTopicSettings(config);
        List<TopicSettings> all = new ArrayList<>(List.of(settings.claim(topics)));
        all.addAll(settings.others(topics, partnerTopics));
        if (keepsSchemas) {
            all.add(settings.schemas());
        }
        return all;
    }

    /** Makes the topic in which schemas are kept when no registry is configured, or checks it. */
    public void prepareSchemas() {
        prepare(List.of(new RunTopicSettings(config).schemas()));
    }

    /** Makes the topic that says whose a run's topics are, or checks it. */
    public void prepareClaim(RunTopics topics) {
        prepare(List.of(new RunTopicSettings(config).claim(topics)));
    }

    /**
     * Makes the other topics of a run, or checks them.
     *
     * @param partnerTopics those of {@link RunTopics#ofPartners} that its topology joins
     */
    public void prepareRun(RunTopics topics, Set<String> partnerTopics) {
        if (!topics.ofPartners().containsAll(partnerTopics)) {
            throw new IllegalArgumentException(
                    "partner topics must be among " + topics.ofPartners() + ": " + partnerTopics);
        }
        prepare(new RunTopicSettings(config).others(topics, partnerTopics));
    }

    /**
     * Makes those topics that are missing, checks the others, and returns when records can be sent to all of them.
     *
     * @throws LogSetupException if a topic cannot be made, or is there with settings that contradict
     */
    public void prepare(List<TopicSettings> topics) {
        List<TopicSettings> found = new ArrayList<>();
        Set<String> there = existing(topics.stream().map(TopicSettings::name).toList());
        List<NewTopic> missing = new ArrayList<>();
        for (TopicSettings topic : topics) {
            if (there.contains(topic.name())) {
                found.add(topic);
            } else {
                missing.add(newTopic(topic));
            }
        }
        Map<String, TopicSettings> byName = new HashMap<>();
        topics.forEach(topic -> byName.put(topic.name(), topic));
        admin.createTopics(missing).values().forEach((name, created) -> {
            try {
                calls.answer(created, "create topic " + name);
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof TopicExistsException)) {
                    throw refused("create topic " + name, name, AclOperation.CREATE, e);
                }
                found.add(byName.get(name)); // somebody else made it in this moment
            }
        });
        awaitLeaders(topics);
        check(found);
    }

    Admin admin() {
        return admin;
    }

    ClusterCalls calls() {
        return calls;
    }

    @Override
    public void close() {
        admin.close(Duration.ofMillis(config.timeoutMs()));
    }

    private NewTopic newTopic(TopicSettings topic) {
        Optional<Short> replication =
                config.replicationFactor() == -1 ? Optional.empty() : Optional.of((short) config.replicationFactor());
        return new NewTopic(topic.name(), Optional.of(topic.partitions()), replication).configs(topic.configuration());
    }

    /**
     * Asks the leader of every partition for its last offset until all answer. Not the metadata: the metadata
     * names a leader before that leader takes records, and a batch refused in between can be lost (KAFKA-15591).
     */
    private void awaitLeaders(List<TopicSettings> topics) {
        long deadline = System.nanoTime() + config.timeoutMs() * 1_000_000;
        Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
        for (TopicDescription description : describe(topics, deadline).values()) {
            description
                    .partitions()
                    .forEach(p -> ends.put(new TopicPartition(description.name(), p.partition()), OffsetSpec.latest()));
        }
        retrying(
                deadline,
                "take records on " + ends.keySet(),
                () -> admin.listOffsets(ends).all());
    }

    private Map<String, TopicDescription> describe(List<TopicSettings> topics, long deadline) {
        List<String> names = topics.stream().map(TopicSettings::name).toList();
        return retrying(
                deadline,
                "describe topics " + names,
                () -> admin.describeTopics(names).allTopicNames());
    }

    private <T> T retrying(long deadline, String what, Supplier<KafkaFuture<T>> call) {
        while (true) {
            try {
                return calls.answer(call.get(), what);
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof RetriableException) || System.nanoTime() - deadline > 0) {
                    throw new LogSetupException(
                            "the cluster could not " + what + " within timeout_ms=" + config.timeoutMs() + ": "
                                    + ClusterCalls.cause(e).getMessage(),
                            ClusterCalls.cause(e));
                }
                pause();
            }
        }
    }

    private void check(List<TopicSettings> topics) {
        differing(topics).stream().findFirst().ifPresent(difference -> {
            throw new LogSetupException(difference.sentence()
                    + ", or change the setting under 'topics' in the configuration, or choose another topic prefix");
        });
    }

    /** What topics lack of what a run expects, those that are missing first. */
    public List<TopicDifference> differences(List<TopicSettings> expected) {
        Set<String> there = existing(expected.stream().map(TopicSettings::name).toList());
        List<TopicDifference> differences = new ArrayList<>();
        expected.stream()
                .filter(topic -> !there.contains(topic.name()))
                .map(topic -> TopicDifference.missing(topic))
                .forEach(differences::add);
        differences.addAll(differing(
                expected.stream().filter(topic -> there.contains(topic.name())).toList()));
        return differences;
    }

    private List<TopicDifference> differing(List<TopicSettings> topics) {
        if (topics.isEmpty()) {
            return List.of();
        }
        long deadline = System.nanoTime() + config.timeoutMs() * 1_000_000;
        Map<String, TopicDescription> descriptions = describe(topics, deadline);
        List<ConfigResource> resources = topics.stream()
                .map(t -> new ConfigResource(ConfigResource.Type.TOPIC, t.name()))
                .toList();
        Map<ConfigResource, KafkaFuture<Config>> configurations =
                admin.describeConfigs(resources).values();
        TopicDifference.Check check = new TopicDifference.Check(brokers, config.replicationFactor());
        List<TopicDifference> differences = new ArrayList<>();
        for (TopicSettings topic : topics) {
            Config existing = configuration(
                    topic.name(),
                    Objects.requireNonNull(
                            configurations.get(new ConfigResource(ConfigResource.Type.TOPIC, topic.name())),
                            topic.name()));
            differences.addAll(
                    check.of(topic, Objects.requireNonNull(descriptions.get(topic.name()), topic.name()), existing));
        }
        return differences;
    }

    private Config configuration(String topic, KafkaFuture<Config> asked) {
        String what = "describe the settings of topic " + topic;
        try {
            return calls.answer(asked, what);
        } catch (ExecutionException e) {
            throw refused(what, topic, AclOperation.DESCRIBE_CONFIGS, e);
        }
    }

    private static void pause() {
        try {
            Thread.sleep(RETRY_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new LogSetupException("interrupted while waiting for topics", e);
        }
    }

    /** Waits for the cluster's answers, at most so long, and says what it waited for. */
    static final class ClusterCalls {
        /** The client has the same limit and gives a better reason; its answer should come first. */
        private static final long SLACK_MS = 2_000;

        private final long timeoutMs;

        ClusterCalls(long timeoutMs) {
            this.timeoutMs = timeoutMs;
        }

        /**
         * The answer.
         *
         * @param what the rest of "the cluster could not ...", such as "create topic x"
         * @throws ExecutionException with the cluster's refusal as its cause
         */
        <T> T answer(KafkaFuture<T> future, String what) throws ExecutionException {
            try {
                return future.get(timeoutMs + SLACK_MS, TimeUnit.MILLISECONDS);
            } catch (TimeoutException e) {
                throw new LogSetupException("the cluster did not " + what + " within timeout_ms=" + timeoutMs, e);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new LogSetupException("interrupted while waiting for the cluster to " + what, e);
            }
        }

        /** The answer, where every refusal is one for the user. */
        <T> T required(KafkaFuture<T> future, String what) {
            try {
                return answer(future, what);
            } catch (ExecutionException e) {
                throw refused(e, what);
            }
        }

        static LogSetupException refused(ExecutionException e, String what) {
            Throwable cause = cause(e);
            return new LogSetupException("the cluster could not " + what + ": " + cause.getMessage(), cause);
        }

        /** Why a call failed; what Kafka wraps it in says nothing. */
        static Throwable cause(ExecutionException e) {
            return Objects.requireNonNullElse(e.getCause(), e);
        }
    }

    /** The settings of each topic of a run. */
    static final class RunTopicSettings {
        /** A version's chunks leave the log segment by segment, so a segment must not hold many versions. */
        private static final int WEIGHTS_SEGMENT_BYTES = 64 << 20;
        /** Compacted topics of a run are small; a segment that is never closed is never compacted. */
        private static final int COMPACTED_SEGMENT_BYTES = 16 << 20;

        /** A refused record is larger than it was by the headers that say why; the largest one must still fit. */
        private static final int ERROR_HEADERS_BYTES = 64 << 10;

        private final TopicsConfig config;

        RunTopicSettings(TopicsConfig config) {
            this.config = config;
        }

        /** The one topic that says whose the others are. */
        TopicSettings claim(RunTopics topics) {
            return compacted(topics.run());
        }

        /** Every other topic of a run that has these topics of partners. */
        List<TopicSettings> others(RunTopics topics, Set<String> partnerTopics) {
            return possible(topics).stream()
                    .filter(topic ->
                            !topics.ofPartners().contains(topic.name()) || partnerTopics.contains(topic.name()))
                    .toList();
        }

        private List<TopicSettings> possible(RunTopics topics) {
            int partitions = config.partitions();
            return List.of(
                    kept(topics.prompts(), partitions, config.passingRetentionMs()),
                    kept(topics.rollouts(), partitions, config.recordRetentionMs()),
                    kept(topics.scores(), partitions, config.recordRetentionMs()),
                    kept(topics.rewards(), partitions, config.recordRetentionMs()),
                    kept(topics.referenceScores(), partitions, config.recordRetentionMs()),
                    kept(topics.teacherScores(), partitions, config.recordRetentionMs()),
                    kept(topics.trajectories(), 1, config.passingRetentionMs()),
                    kept(topics.batches(), 1, config.recordRetentionMs()),
                    compacted(topics.policyVersions()),
                    window(topics.weights(), config.weightsRetentionBytes()),
                    window(topics.optimizerState(), config.optimizerRetentionBytes()),
                    kept(topics.trainingLog(), 1, config.recordRetentionMs()),
                    compacted(topics.serving()),
                    kept(topics.outcomes(), partitions, config.recordRetentionMs()),
                    compacted(topics.admission()),
                    kept(topics.sessions(), partitions, config.recordRetentionMs()),
                    compacted(topics.files()),
                    compacted(topics.evaluations()),
                    kept(topics.deadLetters(), 1, config.recordRetentionMs())
                            .with(TopicConfig.MAX_MESSAGE_BYTES_CONFIG, config.maxRecordBytes() + ERROR_HEADERS_BYTES));
        }

        /** The registry's topic, which is the cluster's and not the run's. */
        TopicSettings schemas() {
            return new TopicSettings(
                    config.schemasTopic(),
                    1,
                    Map.of(TopicConfig.CLEANUP_POLICY_CONFIG, TopicConfig.CLEANUP_POLICY_COMPACT));
        }

        private TopicSettings kept(String name, int partitions, long retentionMs) {
            return base(name, partitions)
                    .with(TopicConfig.CLEANUP_POLICY_CONFIG, TopicConfig.CLEANUP_POLICY_DELETE)
                    .with(TopicConfig.RETENTION_MS_CONFIG, retentionMs)
                    .with(TopicConfig.RETENTION_BYTES_CONFIG, -1);
        }

        private TopicSettings window(String name, long retentionBytes) {
            TopicSettings kept = base(name, 1)
                    .with(TopicConfig.CLEANUP_POLICY_CONFIG, TopicConfig.CLEANUP_POLICY_DELETE)
                    .with(TopicConfig.RETENTION_MS_CONFIG, -1)
                    .with(TopicConfig.SEGMENT_BYTES_CONFIG, WEIGHTS_SEGMENT_BYTES);
            // a caller without the model leaves the setting out
            return retentionBytes == 0 ? kept : kept.with(TopicConfig.RETENTION_BYTES_CONFIG, retentionBytes);
        }

        private TopicSettings compacted(String name) {
            return base(name, 1)
                    .with(TopicConfig.CLEANUP_POLICY_CONFIG, TopicConfig.CLEANUP_POLICY_COMPACT)
                    .with(TopicConfig.SEGMENT_BYTES_CONFIG, COMPACTED_SEGMENT_BYTES);
        }

        private TopicSettings base(String name, int partitions) {
            TopicSettings settings = new TopicSettings(
                    name,
                    partitions,
                    Map.of(TopicConfig.MAX_MESSAGE_BYTES_CONFIG, Integer.toString(config.maxRecordBytes())));
            return config.minInsyncReplicas() == -1
                    ? settings
                    : settings.with(TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG, config.minInsyncReplicas());
        }
    }
}
