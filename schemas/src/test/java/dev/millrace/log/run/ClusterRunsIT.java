package dev.millrace.log.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.registry.LogSchemaRegistry;
import dev.millrace.log.registry.RegistryContents.Registration;
import dev.millrace.log.run.ClusterRuns.ClusterRun;
import dev.millrace.log.run.ClusterRuns.Holdings;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
class ClusterRunsIT {
    private static final TopicsConfig CONFIG = TopicsConfig.defaults();
    /** At which the newest record is old. */
    private static final Clock LATER = Clock.offset(Clock.systemUTC(), Duration.ofMinutes(5));

    @TempDir
    private static Path directory;

    private static EmbeddedBroker broker;
    private static Map<String, Object> client;
    private static Admin admin;

    @BeforeAll
    static void startBroker() {
        broker = EmbeddedBroker.start(directory);
        client = Map.of("bootstrap.servers", broker.bootstrapServers());
        admin = Admin.create(client);
    }

    @AfterAll
    static void stopBroker() {
        admin.close();
        broker.close();
    }

    /** All of a cluster that outlives its clients, but for transactional ids. */
    private record Contents(
            Set<String> topics, List<String> groups, List<String> groupSettings, Map<String, List<Integer>> subjects) {
        static Contents now() throws Exception {
            Map<String, List<Integer>> subjects = new TreeMap<>();
            try (LogSchemaRegistry registry = LogSchemaRegistry.reading(client, CONFIG.schemasTopic(), 90_000)) {
                registry.contents()
                        .subjects()
                        .forEach(subject -> subjects.put(
                                subject,
                                registry.contents().versions(subject).values().stream()
                                        .map(Registration::id)
                                        .toList()));
            }
            return new Contents(
                    admin.listTopics().names().get(90, TimeUnit.SECONDS),
                    admin.listGroups().all().get(90, TimeUnit.SECONDS).stream()
                            .map(GroupListing::groupId)
                            .sorted()
                            .toList(),
                    admin
                            .listConfigResources(Set.of(ConfigResource.Type.GROUP), new ListConfigResourcesOptions())
                            .all()
                            .get(90, TimeUnit.SECONDS)
                            .stream()
                            .map(ConfigResource::name)
                            .sorted()
                            .toList(),
                    subjects);
        }
    }

    private static RunLog begun(RunTopics topics, String id) {
        return RunLog.open(client, topics, new RunIdentity(id, 0, "default"), CONFIG, "", Clock.systemUTC());
    }

    private static ClusterRuns runs(Clock clock) {
        return new ClusterRuns(client, CONFIG, "", clock);
    }

    private static KafkaProducer<byte[], byte[]> transactional(String id) {
        Map<String, Object> settings = new HashMap<>(client);
        settings.put("transactional.id", id);
        KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        producer.initTransactions();
        return producer;
    }

    private static void committed(String group, String topic) throws Exception {
        admin.alterConsumerGroupOffsets(group, Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(1)))
                .all()
                .get(90, TimeUnit.SECONDS);
    }

    /** Leftovers of a run's roles in addition to its topics and subjects. */
    private static void played(RunTopics topics) throws Exception {
        committed(topics.prefix() + "generator", topics.prompts());
        committed(topics.prefix() + "topology-1", topics.rollouts());
        committed(topics.prefix() + "learner.owner", topics.run());
        transactional(topics.prefix() + "learner").close();
        admin.createTopics(List.of(new NewTopic(topics.prefix() + "topology-join-journal-changelog", 1, (short) 1)))
                .all()
                .get(90, TimeUnit.SECONDS);
        admin.incrementalAlterConfigs(Map.of(
                        new ConfigResource(ConfigResource.Type.GROUP, topics.prefix() + "topology-1"),
                        List.of(new AlterConfigOp(
                                new ConfigEntry("streams.session.timeout.ms", "46000"), AlterConfigOp.OpType.SET))))
                .all()
                .get(90, TimeUnit.SECONDS);
    }

    @Test
    void shouldLeaveTheClusterAsItWasBeforeTheRunButForTransactionalIds() throws Exception {
        begun(new RunTopics("kept."), "kept").close();
        Contents before = Contents.now();
        RunTopics topics = new RunTopics("millrace.gone.");
        begun(topics, "gone").close();
        played(topics);
        committed("millrace.gone.dashboard", topics.trainingLog());
        assertThat(Contents.now().subjects())
                .hasSizeGreaterThan(before.subjects().size());

        try (ClusterRuns runs = runs(LATER)) {
            ClusterRun found = runs.at(topics);
            assertThat(found.claim().orElseThrow().run().runId()).isEqualTo("gone");
            assertThat(found.holdings().others()).containsExactly("millrace.gone.dashboard");
            Holdings deleted = runs.delete(topics);
            assertThat(deleted.topics())
                    .containsAll(topics.required())
                    .contains("millrace.gone.topology-join-journal-changelog");
            assertThat(deleted.groups())
                    .containsExactly(
                            "millrace.gone.generator", "millrace.gone.learner.owner", "millrace.gone.topology-1");
            assertThat(runs.at(topics).holdings().isEmpty()).isTrue();
            assertThat(runs.at(topics).holdings().transactionalIds())
                    .containsExactly("millrace.gone.learner", "millrace.gone.run.writer");
            assertThat(runs.transactionalIdsKeptMs()).hasValue(TimeUnit.DAYS.toMillis(7));
        }
        admin.deleteConsumerGroups(List.of("millrace.gone.dashboard")).all().get(90, TimeUnit.SECONDS);
        assertThat(Contents.now()).isEqualTo(before);
    }

    @Test
    void shouldKeepTheIdsOfSchemasWhenTheLastRunThatHasThemIsDeleted() throws Exception {
        TopicsConfig own = new TopicsConfig(1, -1, -1, -1, -1, -1, -1, 1 << 20, "own_schemas", 90_000);
        RunTopics topics = new RunTopics("ids.");
        RunIdentity run = new RunIdentity("ids", 0, "default");
        RunLog.open(client, topics, run, own, "", Clock.systemUTC()).close();
        Map<Integer, String> before = schemas("own_schemas");
        try (ClusterRuns runs = new ClusterRuns(client, own, "", LATER)) {
            assertThat(runs.delete(topics).subjects()).contains("ids.rollouts-value");
        }
        try (LogSchemaRegistry registry = LogSchemaRegistry.reading(client, "own_schemas", 90_000)) {
            assertThat(registry.contents().subjects()).isEmpty();
            before.forEach((id, text) -> assertThat(registry.contents().schemaText(id))
                    .as("id " + id)
                    .contains(text));
        }
        RunLog.open(client, topics, run, own, "", Clock.systemUTC()).close();
        assertThat(schemas("own_schemas")).isEqualTo(before);
    }

    private static Map<Integer, String> schemas(String topic) {
        Map<Integer, String> schemas = new TreeMap<>();
        try (LogSchemaRegistry registry = LogSchemaRegistry.reading(client, topic, 90_000)) {
            registry.contents()
                    .subjects()
                    .forEach(subject -> registry.contents()
                            .versions(subject)
                            .values()
                            .forEach(each -> schemas.put(each.id(), each.schema())));
        }
        return schemas;
    }

    @Test
    void shouldRefuseWhileARoleIsAlive() throws Exception {
        RunTopics topics = new RunTopics("alive.");
        begun(topics, "alive").close();
        try (ClusterRuns now = runs(Clock.systemUTC());
                ClusterRuns later = runs(LATER)) {
            assertThatThrownBy(() -> now.delete(topics))
                    .isInstanceOf(LogSetupException.class)
                    .hasMessageMatching(
                            "the run under the topic prefix 'alive\\.' is alive: its newest record is \\d+ s old; "
                                    + "stop its roles, and delete it when the newest record is older than 30 s");
            try (KafkaProducer<byte[], byte[]> producer = transactional("alive.generator-g1")) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topics.rollouts(), new byte[1]))
                        .get(90, TimeUnit.SECONDS);
                assertThatThrownBy(() -> later.delete(topics))
                        .hasMessageContaining("is alive: a transaction of alive.generator-g1 is open;");
                producer.abortTransaction();
            }
            Map<String, Object> member = new HashMap<>(client);
            member.put("group.id", "alive.scorer");
            try (KafkaConsumer<byte[], byte[]> consumer =
                    new KafkaConsumer<>(member, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(topics.rollouts()));
                while (consumer.assignment().isEmpty()) {
                    consumer.poll(Duration.ofMillis(100));
                }
                assertThatThrownBy(() -> later.delete(topics))
                        .hasMessageContaining("is alive: group alive.scorer has members;");
            }
            assertThat(later.at(topics).signs()).isEmpty();
            assertThat(later.at(topics).holdings().topics()).containsAll(topics.required());
        }
    }

    private static OptionalLong newestOf(RunTopics topics) {
        try (ClusterRuns runs = runs(LATER)) {
            return runs.at(topics).newestVersion();
        }
    }

    private static void publish(RunLog log, long from, long to) throws Exception {
        String topic = log.connection().topics().policyVersions();
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(client, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (long version = from; version <= to; version++) {
                PolicyVersion manifest = PolicyVersion.newBuilder()
                        .setRunId(log.connection().run().runId())
                        .setEpoch(0)
                        .setPolicyId("default")
                        .setVersion(version)
                        .setParentVersion(version - 1)
                        .setBatchId(version - 1)
                        .setShape("{}")
                        .setTokenizerHash("t")
                        .setWeights(TensorLocation.newBuilder()
                                .setTopic("weights")
                                .setPartition(0)
                                .setFirstOffset(0)
                                .setLastOffset(0)
                                .setTensors(List.of())
                                .setSha256("hash " + version)
                                .build())
                        .setOptimizerSteps(version)
                        .setRolloutsConsumed(0)
                        .setTokensTrained(0)
                        .setPublishedAtMs(0)
                        .build();
                producer.send(new ProducerRecord<>(
                                topic,
                                VersionKey.of(manifest).bytes(),
                                AvroSerde.of(
                                                PolicyVersion.class,
                                                log.connection().registry())
                                        .serializer()
                                        .serialize(topic, manifest)))
                        .get(90, TimeUnit.SECONDS);
            }
        }
    }

    @Test
    void shouldNameTheEndOfTheChainAsNewestWhateverVersionWasMadeUp() throws Exception {
        RunTopics topics = new RunTopics("forged.");
        try (RunLog log = begun(topics, "forged")) {
            publish(log, 0, 5);
            publish(log, 1_000_000, 1_000_000);
            assertThat(newestOf(topics)).as("read whole").hasValue(5);
            publish(log, 6, 24);
            assertThat(newestOf(topics))
                    .as("the tail begins with the made-up one")
                    .hasValue(24);
            publish(log, 1_000_000, 1_000_001);
            assertThat(newestOf(topics)).as("the tail ends with made-up ones").hasValue(24);
            publish(log, 25, 60);
            assertThat(newestOf(topics)).as("by the tail alone").hasValue(60);
        }
    }

    @Test
    void shouldListRunsAndTellThemFromOthersWithALongerPrefix() throws Exception {
        RunTopics outer = new RunTopics("outer.");
        RunTopics inner = new RunTopics("outer.learner.");
        begun(outer, "outer").close();
        begun(inner, "inner").close();
        committed("outer.learner.scorer", inner.rollouts());
        admin.deleteTopics(List.of(outer.scores())).all().get(90, TimeUnit.SECONDS);
        try (ClusterRuns runs = runs(LATER)) {
            List<ClusterRun> all = runs.all();
            ClusterRun first = all.stream()
                    .filter(run -> run.topics().equals(outer))
                    .findFirst()
                    .orElseThrow();
            assertThat(first.missing()).containsExactly(outer.scores());
            assertThat(first.holdings().groups()).isEmpty();
            assertThat(first.holdings().topics()).allMatch(topic -> !topic.startsWith("outer.learner."));
            assertThat(first.newestVersion()).isEmpty();
            assertThat(first.bytes().orElseThrow()).isPositive();
            assertThat(first.lastRecordMs().orElseThrow()).isPositive();
            assertThat(all.stream().filter(run -> run.topics().equals(inner)).findFirst())
                    .hasValueSatisfying(run -> {
                        assertThat(run.claim().orElseThrow().run().runId()).isEqualTo("inner");
                        assertThat(run.holdings().groups()).containsExactly("outer.learner.scorer");
                    });
        }
    }

    @Test
    void shouldDeleteWhatIsLeftOfARunWhoseTopicsWereDeletedByHand() throws Exception {
        RunTopics topics = new RunTopics("by-hand.");
        begun(topics, "by-hand").close();
        committed("by-hand.generator", topics.prompts());
        try (ClusterRuns runs = runs(LATER)) {
            admin.deleteTopics(runs.at(topics).holdings().topics()).all().get(90, TimeUnit.SECONDS);
            assertThat(runs.at(topics).claim()).isEmpty();
            Holdings deleted = runs.delete(topics);
            assertThat(deleted.topics()).isEmpty();
            assertThat(deleted.subjects()).contains("by-hand.rollouts-value");
            assertThat(runs.at(topics).holdings().isEmpty()).isTrue();
        }
    }
}
