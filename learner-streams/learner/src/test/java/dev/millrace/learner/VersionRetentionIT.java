package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.learner.VersionRetention.RetainedVersions;
import dev.millrace.learner.VersionRetention.ServingVersions;
import dev.millrace.learner.VersionRetention.UnscoredRollouts;
import dev.millrace.learner.VersionRetention.VersionRemoval;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.weights.BrokenVersionPolicy;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionFacts;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.VersionWriter;
import dev.millrace.weights.WeightsConfig;
import dev.millrace.weights.store.ObjectStore;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
class VersionRetentionIT {
    private static final DecoderShape SHAPE = new DecoderShape(11, 8, 1, 2, 1, 4, 12, 32, 10_000, 1e-6, true, true);
    private static final RunIdentity RUN = new RunIdentity("run-1", 0, "policy");
    private static final Duration LIMIT = Duration.ofMinutes(5);

    @TempDir
    private static Path directory;

    private static EmbeddedBroker broker;

    private RunLog log;
    private LogConnection connection;
    private KafkaProducer<byte[], byte[]> producer;

    @BeforeAll
    static void startBroker() {
        broker = EmbeddedBroker.start(directory.resolve("broker"));
    }

    @AfterAll
    static void stopBroker() {
        broker.close();
    }

    @BeforeEach
    void openRun(TestInfo test) {
        log = RunLog.open(
                Map.of("bootstrap.servers", broker.bootstrapServers()),
                new RunTopics(test.getTestMethod().orElseThrow().getName() + "."),
                RUN,
                TopicsConfig.defaults(),
                "",
                Clock.systemUTC());
        connection = log.connection();
        producer = new KafkaProducer<>(
                connection.producer(Map.of("transactional.id", connection.scoped("learner"))),
                new ByteArraySerializer(),
                new ByteArraySerializer());
        producer.initTransactions();
    }

    @AfterEach
    void closeRun() {
        producer.close(Duration.ZERO);
        log.close();
    }

    /** Anchors are 0, 3, 6, 9; the newest two are kept. */
    @Test
    void shouldRemoveWhatNobodyNeedsAndNothingElse() throws Exception {
        WeightsConfig config = config("kafka");
        publish(config, 10);
        try (PolicyFeed feed = new PolicyFeed(connection, config);
                Admin admin = Admin.create(connection.admin());
                ServingVersions board = new ServingVersions(connection, Clock.systemUTC());
                UnscoredRollouts unscored = new UnscoredRollouts(connection, admin)) {
            feed.awaitAtLeast(9, LIMIT);
            VersionRemoval removal = new VersionRemoval(
                    connection,
                    admin,
                    feed,
                    ObjectStore.of(config.store()).stream().toList(),
                    10_000);

            TopicPartition rollouts = send(connection.topics().rollouts(), "g", rollout(4, 5));
            send(connection.topics().serving(), "g", serving("g", 9, 7L, false));
            assertThat(sweep(board, unscored, removal))
                    .as("anchor of version 4, which a waiting rollout needs")
                    .isEqualTo(3);
            assertGone(feed, 0, 1, 2);
            assertThere(feed, 3, 4, 5, 6, 7, 8, 9);
            assertThatThrownBy(() -> feed.loadOptimizer(3)).isInstanceOf(VersionUnavailableException.class);
            assertThat(feed.loadOptimizer(4).steps()).isZero();

            admin.alterConsumerGroupOffsets(connection.scoped("scorer"), Map.of(rollouts, new OffsetAndMetadata(2)))
                    .all()
                    .get(90, TimeUnit.SECONDS); // the record and its transaction's end
            assertThat(sweep(board, unscored, removal))
                    .as("anchor of version 7, which is in flight")
                    .isEqualTo(6);
            assertGone(feed, 3, 4, 5);

            send(connection.topics().serving(), "g", serving("g", 9, null, false));
            send(connection.topics().serving(), "s", serving("s", 7, null, false));
            assertThat(sweep(board, unscored, removal))
                    .as("version 7 is served")
                    .isEqualTo(6);
            send(connection.topics().serving(), "s", serving("s", 7, null, true));
            assertThat(sweep(board, unscored, removal))
                    .as("anchor of version 8, which is one of the newest two")
                    .isEqualTo(6);
            assertThere(feed, 6, 7, 8, 9);
            assertThat(sweep(board, unscored, removal))
                    .as("again, to no effect")
                    .isEqualTo(6);
            assertThat(feed.manifest(0).getVersion()).as("manifests stay").isZero();
        }
    }

    /** The optimizer's state goes with versions 0, 4 and 8; anchors are 0, 3, 6, 9. */
    @Test
    void shouldKeepTheCheckpointThatTheOldestVersionNeededIsLearntFrom() throws Exception {
        WeightsConfig config = config("kafka");
        publish(config, 10, 4);
        try (PolicyFeed feed = new PolicyFeed(connection, config);
                Admin admin = Admin.create(connection.admin())) {
            feed.awaitAtLeast(9, LIMIT);
            VersionRemoval removal = new VersionRemoval(
                    connection,
                    admin,
                    feed,
                    ObjectStore.of(config.store()).stream().toList(),
                    10_000);

            assertThat(removal.remove(new RetainedVersions(7, "it is served"), 9))
                    .as("anchor of version 4, the checkpoint before it")
                    .isEqualTo(3);

            assertGone(feed, 0, 1, 2);
            assertThere(feed, 3, 4, 5, 6, 7, 8, 9);
            assertThat(feed.loadOptimizer(4).steps()).isZero();
            assertThatThrownBy(() -> feed.loadOptimizer(7))
                    .hasMessageEndingWith("without the optimiser's state, so training cannot continue from it alone");
        }
    }

    @Test
    void shouldRemoveFilesAndWhatAKilledLearnerLeft(@TempDir Path store) throws Exception {
        WeightsConfig config = config(store.toUri().toString());
        publish(config, 8);
        Path objects = store.resolve("run-1/0/policy");
        Path orphan = Files.writeString(objects.resolve("000000006-weights-" + "0".repeat(64)), "another attempt");
        Path half = Files.writeString(objects.resolve("000000007-weights-00.partial"), "half");
        Path next = Files.writeString(objects.resolve("000000008-weights-" + "0".repeat(64)), "not committed yet");
        Path foreign = Files.writeString(objects.resolve("notes.txt"), "not ours");
        try (PolicyFeed feed = new PolicyFeed(connection, config);
                Admin admin = Admin.create(connection.admin());
                UnscoredRollouts unscored = new UnscoredRollouts(connection, admin)) {
            feed.awaitAtLeast(7, LIMIT);
            VersionRemoval removal = new VersionRemoval(
                    connection,
                    admin,
                    feed,
                    ObjectStore.of(config.store()).stream().toList(),
                    10_000);
            assertThat(removal.remove(
                            RetainedVersions.of(
                                    7, 2, List.of(), List.of(), unscored.oldestVersion(LIMIT), OptionalLong.empty()),
                            7))
                    .isEqualTo(6);

            assertThat(orphan).doesNotExist();
            assertThat(half).doesNotExist();
            assertThat(next).exists();
            assertThat(foreign).exists();
            assertGone(feed, 0, 5);
            assertThere(feed, 6, 7);
            try (Stream<Path> left = Files.list(objects)) {
                assertThat(left.map(path -> path.getFileName().toString().replaceAll("-[0-9a-f]{64}", ""))
                                .collect(Collectors.toSet()))
                        .isEqualTo(Set.of(
                                "000000006-weights",
                                "000000006-optimizer",
                                "000000007-weights",
                                "000000007-optimizer",
                                "000000008-weights",
                                "notes.txt"));
            }
        }
    }

    @Test
    void shouldSayWhoDoesNotServeWhatIsPublishedUntilItDoes() throws Exception {
        WeightsConfig config = new WeightsConfig(
                "kafka", "", Dtype.F32, 3, 1, 2, 1, BrokenVersionPolicy.WAIT, 4096, 100, 10_000, 10_000);
        publish(config, 2);
        send(connection.topics().serving(), "g", serving("g1", 0, null, false));
        send(connection.topics().serving(), "s", serving("s", 1, null, false));
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        try (VersionRetention care = new VersionRetention(connection, config, List.of(), registry, Clock.systemUTC())) {
            care.start();
            await(() -> registry.find("millrace.serving.unserved.seconds")
                            .tag("server", "generator g1")
                            .gauge()
                    != null);
            assertThat(registry.find("millrace.serving.unserved.seconds")
                            .tag("server", "scorer s")
                            .gauge())
                    .isNull();

            send(connection.topics().serving(), "g", serving("g1", 1, null, false));
            await(() -> registry.find("millrace.serving.unserved.seconds").gauges().stream()
                    .noneMatch(gauge -> "generator g1".equals(gauge.getId().getTag("server"))));
        }
        assertThat(registry.find("millrace.weights.oldest.version").gauge()).isNull();
    }

    private long sweep(ServingVersions board, UnscoredRollouts unscored, VersionRemoval removal) throws Exception {
        board.update(LIMIT);
        return removal.remove(
                RetainedVersions.of(
                        9, 2, board.servers(), List.of(), unscored.oldestVersion(LIMIT), OptionalLong.empty()),
                9);
    }

    private static WeightsConfig config(String store) {
        return new WeightsConfig(
                store, "", Dtype.F32, 3, 1, 2, 30_000, BrokenVersionPolicy.STOP, 4096, 100, 10_000, 10_000);
    }

    private void publish(WeightsConfig config, int count) {
        publish(config, count, 1);
    }

    private void publish(WeightsConfig config, int count, int checkpointEvery) {
        VersionWriter writer = new VersionWriter(connection, producer, config);
        Weights weights = Weights.random(SHAPE, 1);
        for (long version = 0; version < count; version++) {
            producer.beginTransaction();
            VersionFacts facts = new VersionFacts(version, version - 1, "t", 0, 0, System.currentTimeMillis());
            PolicyVersion manifest = version % checkpointEvery == 0
                    ? writer.write(facts, weights, new AdamW(new AdamW.Config(0.9, 0.999, 1e-8, 0), SHAPE).state())
                    : writer.writeWithoutState(facts, weights, 0);
            producer.commitTransaction();
            writer.continueFrom(manifest, weights);
            weights.tensor("model.embed_tokens.weight").put(0, version);
        }
    }

    private static void assertGone(PolicyFeed feed, long... versions) {
        for (long version : versions) {
            assertThatThrownBy(() -> feed.load(version))
                    .as("version %d", version)
                    .isInstanceOf(VersionUnavailableException.class);
        }
    }

    private static void assertThere(PolicyFeed feed, long... versions) {
        for (long version : versions) {
            assertThat(feed.load(version).tensor("model.embed_tokens.weight").get(0))
                    .as("version %d", version)
                    .isEqualTo(
                            version == 0
                                    ? Weights.random(SHAPE, 1)
                                            .tensor("model.embed_tokens.weight")
                                            .get(0)
                                    : version - 1);
        }
    }

    private Serving serving(String id, long version, Long oldest, boolean left) {
        return new Serving(
                "run-1",
                0,
                id,
                id.startsWith("g") ? ServerRole.GENERATOR : ServerRole.SCORER,
                "policy",
                version,
                0L,
                System.currentTimeMillis(),
                0L,
                oldest,
                left,
                null,
                List.of(),
                null);
    }

    private static Rollout rollout(long... versions) {
        List<VersionSpan> spans = IntStream.range(0, versions.length)
                .mapToObj(i -> new VersionSpan(versions[i], i, i + 1))
                .toList();
        return new Rollout(
                "run-1",
                0,
                "g/0",
                "g",
                0L,
                0,
                8,
                "generator-0",
                "inc",
                "t",
                PackedInts.of(1, 5),
                PackedInts.of(4, 2),
                PackedMask.of((byte) 1, (byte) 1),
                PackedFloats.of(-0.5f, -1f),
                LogProbDistribution.TEMPERED,
                null,
                new SamplingParameters(1.0, 0, 1.0, 8, 7L, false, 0, 0.0, false),
                List.of(new Turn(Speaker.POLICY, 0, 2, null)),
                spans,
                0.5,
                Map.of(),
                FinishReason.STOP,
                5L,
                1L,
                2L,
                null,
                null,
                null,
                null,
                null,
                null,
                null);
    }

    private <T extends SpecificRecord> TopicPartition send(String topic, String key, T record) throws Exception {
        @SuppressWarnings("unchecked")
        Class<T> type = (Class<T>) record.getClass();
        producer.beginTransaction();
        var sent = producer.send(new ProducerRecord<>(
                topic,
                key.getBytes(StandardCharsets.UTF_8),
                AvroSerde.of(type, connection.registry()).serializer().serialize(topic, record)));
        producer.commitTransaction();
        return new TopicPartition(topic, sent.get().partition());
    }

    private static void await(BooleanSupplier condition) {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("waited for %s", LIMIT).isLessThan(deadline);
            LockSupport.parkNanos(5_000_000);
        }
    }
}
