package dev.millrace.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Bfloat16;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.FrozenWeights;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.LoraAdapter;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.AdapterBase;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEncoding;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroSerde;
import java.net.URI;
import java.nio.FloatBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.extension.TestExecutionExceptionHandler;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
class VersionsOnTheLogIT {
    private static final DecoderShape SHAPE = SmallDecoder.SHAPE;
    private static final WeightsConfig CONFIG = new WeightsConfig(
            "kafka", "", Dtype.F32, 4, 1, 0, 30_000, BrokenVersionPolicy.STOP, 256, 100, 10_000, 60_000);
    private static final Duration LIMIT = Duration.ofMinutes(5);

    @TempDir
    private static Path directory;

    private static EmbeddedBroker broker;

    private final Queue<String> acknowledged = new ConcurrentLinkedQueue<>();
    private RunLog log;
    private LogConnection connection;
    private KafkaProducer<byte[], byte[]> producer;

    @BeforeAll
    static void startBroker() {
        broker = EmbeddedBroker.start(directory);
    }

    @AfterAll
    static void stopBroker() {
        broker.close();
    }

    @BeforeEach
    void openRun(TestInfo test) {
        String name = test.getTestMethod().orElseThrow().getName();
        log = RunLog.open(
                Map.of("bootstrap.servers", broker.bootstrapServers()),
                new RunTopics(name + "."),
                SmallDecoder.RUN,
                TopicsConfig.defaults(),
                "",
                Clock.systemUTC());
        connection = log.connection();
        producer = producer();
    }

    @AfterEach
    void closeRun() {
        producer.close(Duration.ZERO);
        log.close();
    }

    /**
     * Diagnoses an invisible version: what was acknowledged, and what the log has. Seldom, and only next to other
     * builds, the first manifest of a new topic is committed and the topic stays empty.
     */
    @RegisterExtension
    final TestExecutionExceptionHandler unseen = (test, failure) -> {
        if (!(failure instanceof VersionUnavailableException)) {
            throw failure;
        }
        RunTopics topics = connection.topics();
        List<String> facts = new ArrayList<>();
        acknowledged.stream()
                .filter(sent -> sent.contains(topics.policyVersions()))
                .forEach(facts::add);
        try (Admin admin = Admin.create(connection.admin())) {
            for (String topic : List.of(topics.policyVersions(), topics.weights(), topics.optimizerState())) {
                TopicPartition partition = new TopicPartition(topic, 0);
                for (IsolationLevel level : IsolationLevel.values()) {
                    facts.add(level + " end of " + topic.substring(topic.indexOf('.') + 1) + " "
                            + admin.listOffsets(Map.of(partition, OffsetSpec.latest()), new ListOffsetsOptions(level))
                                    .partitionResult(partition)
                                    .get(10, TimeUnit.SECONDS)
                                    .offset());
                }
                facts.add(admin.describeProducers(List.of(partition)).all().get(10, TimeUnit.SECONDS) + " wrote to it");
            }
            facts.add(admin.describeTopics(List.of(topics.policyVersions()))
                    .allTopicNames()
                    .get(10, TimeUnit.SECONDS)
                    .toString());
            facts.add(admin.describeTransactions(List.of(connection.scoped("learner")))
                    .all()
                    .get(10, TimeUnit.SECONDS)
                    .toString());
        }
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.filter(Files::isRegularFile)
                    .filter(file -> file.toString().contains(topics.policyVersions()))
                    .toList()) {
                facts.add(file + " has " + Files.size(file) + " bytes");
            }
        }
        throw new AssertionError(failure.getMessage() + "; " + String.join("; ", facts), failure);
    };

    @Test
    void shouldGiveBackTheBitsThatWerePublished() {
        Weights weights = Weights.random(SHAPE, 1);
        AdamW optimizer = afterOneStep(weights);
        PolicyVersion manifest = publish(0, weights, optimizer.state());

        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG)) {
            assertThat(feed.awaitAtLeast(0, LIMIT)).isEqualTo(manifest);
            assertSame(feed.load(0), weights);

            AdamW.State state = feed.loadOptimizer(0);
            assertThat(state.steps()).isEqualTo(1);
            for (TensorSpec spec : SHAPE.tensors()) {
                assertThat(state.first().bytes(spec.name()))
                        .isEqualTo(optimizer.state().first().bytes(spec.name()));
                assertThat(state.second().bytes(spec.name()))
                        .isEqualTo(optimizer.state().second().bytes(spec.name()));
            }
        }
    }

    @Test
    void shouldGiveBackBfloat16InHalfTheBytesWithTheMastersBesideTheMoments() {
        Weights weights = Weights.random(SHAPE, 1).as(Dtype.BF16);
        AdamW optimizer = afterOneStep(weights);
        VersionWriter writer = new VersionWriter(connection, producer, CONFIG);
        List<PolicyVersion> manifests = new ArrayList<>();
        for (int version = 0; version < 2; version++) {
            producer.beginTransaction();
            manifests.add(
                    writer.write(new VersionFacts(version, version - 1, "t", 0, 0, 0), weights, optimizer.state()));
            producer.commitTransaction();
            writer.continueFrom(manifests.get(version), weights);
            step(optimizer, weights);
        }
        assertThat(manifests.get(0).getWeights().getTensors())
                .allSatisfy(tensor -> assertThat(tensor.getDtype()).isEqualTo("BF16"));
        assertThat(manifests.get(1).getWeights().getBaseVersion()).isZero();

        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG)) {
            feed.awaitAtLeast(1, LIMIT);
            Weights found = feed.load(1);
            assertThat(found.dtype()).isEqualTo(Dtype.BF16);
            assertThat(VersionHash.of(found))
                    .isEqualTo(manifests.get(1).getWeights().getSha256());
            AdamW.State state = feed.loadOptimizer(1);
            for (TensorSpec spec : SHAPE.tensors()) {
                for (int i = 0; i < found.tensor(spec.name()).limit(); i++) {
                    float master =
                            state.masters().orElseThrow().tensor(spec.name()).get(i);
                    assertThat(found.tensor(spec.name()).get(i)).isEqualTo(Bfloat16.value(Bfloat16.of(master)));
                }
            }

            TensorLocation location = manifests.get(1).getWeights();
            TensorEntry narrow = TensorEntry.newBuilder(location.getTensors().get(0))
                    .setDtype("F8_E4M3")
                    .build();
            PolicyVersion unknown = PolicyVersion.newBuilder(manifests.get(1))
                    .setWeights(TensorLocation.newBuilder(location)
                            .setTensors(List.of(narrow))
                            .build())
                    .build();
            assertThatThrownBy(() -> PolicyFeed.dtypeOf(unknown))
                    .isInstanceOf(CorruptVersionException.class)
                    .hasMessage(
                            "version 1 is of the type F8_E4M3, which this release does not know; it knows [F32, BF16],"
                                    + " so update it");
        }
    }

    @Test
    void shouldFollowNewVersionsAndStillLoadOldOnes() {
        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG)) {
            assertThat(feed.newestCommitted()).isEmpty();
            assertThatThrownBy(() -> feed.awaitAtLeast(0, Duration.ofMillis(50)))
                    .isInstanceOf(VersionUnavailableException.class)
                    .hasMessage("version 0 was not published within 50 ms; the newest is none ("
                            + connection.topics().policyVersions()
                            + "-0 was read to offset 0); is the learner running?");
            for (int version = 0; version < 3; version++) {
                publish(version, Weights.random(SHAPE, version), fresh());
                assertThat(feed.awaitAtLeast(version, LIMIT).getVersion()).isEqualTo(version);
            }
            assertThat(feed.awaitNewerThan(2, Duration.ofMillis(50))).isEmpty();
            for (int version = 0; version < 3; version++) {
                assertSame(feed.load(version), Weights.random(SHAPE, version));
            }
        }
    }

    @Test
    void shouldNeverSeeWhatWasNotCommitted() {
        publish(0, Weights.random(SHAPE, 0), fresh());
        producer.beginTransaction();
        write(connection, producer, 1, Weights.random(SHAPE, 10), fresh());
        producer.abortTransaction();
        producer.beginTransaction();
        write(connection, producer, 1, Weights.random(SHAPE, 11), fresh());
        producer.flush();
        producer.close(Duration.ZERO); // a learner killed before its commit
        producer = producer(); // and started again, which aborts what the first had begun
        PolicyVersion committed = publish(1, Weights.random(SHAPE, 1), fresh());

        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG)) {
            assertThat(feed.awaitAtLeast(1, LIMIT)).isEqualTo(committed);
            assertSame(feed.load(1), Weights.random(SHAPE, 1));
            assertSame(feed.load(0), Weights.random(SHAPE, 0));
        }
    }

    @Test
    void shouldPassOverGarbageAndOtherRunsAndSayHowMany() {
        publish(0, Weights.random(SHAPE, 0), fresh());
        RunIdentity other = new RunIdentity("run-2", 0, "policy");
        producer.beginTransaction();
        write(
                new LogConnection(connection.clientProperties(), connection.topics(), other, connection.registry()),
                producer,
                7,
                Weights.random(SHAPE, 7),
                fresh());
        producer.send(record(connection.topics().policyVersions(), "garbage"));
        producer.send(record(connection.topics().weights(), "garbage"));
        producer.commitTransaction();
        publish(1, Weights.random(SHAPE, 1), fresh());

        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG)) {
            assertThat(feed.awaitAtLeast(1, LIMIT).getVersion()).isEqualTo(1);
            assertSame(feed.load(1), Weights.random(SHAPE, 1));
            assertThatThrownBy(() -> feed.load(7))
                    .isInstanceOf(VersionUnavailableException.class)
                    .hasMessage("version 7 is not among the published ones; the newest is 1");
        }
    }

    /** Each of these ended every role of a run at every start. */
    @Test
    void shouldPassOverManifestsThatDoNotExtendTheChain() {
        publish(0, Weights.random(SHAPE, 0), fresh());
        PolicyVersion one = publish(1, Weights.random(SHAPE, 1), fresh());
        Queue<Long> foreign = new ConcurrentLinkedQueue<>();
        try (PolicyFeed follows = new PolicyFeed(connection, CONFIG, foreign::add);
                NewestWeights served = new NewestWeights(follows, LIMIT)) {
            await(() -> served.current().version() == 1);
            publish(PolicyVersion.newBuilder(one)
                    .setWeights(TensorLocation.newBuilder(one.getWeights())
                            .setSha256("00")
                            .build())
                    .build());
            publish(PolicyVersion.newBuilder(one)
                    .setVersion(1_000_000)
                    .setParentVersion(999_999)
                    .build());
            publish(PolicyVersion.newBuilder(one)
                    .setVersion(2)
                    .setParentVersion(0)
                    .build());
            publish(one);
            publish(2, Weights.random(SHAPE, 2), fresh());

            await(() -> served.current().version() == 2);
            assertThat(follows.newest().orElseThrow().getVersion()).isEqualTo(2);
            assertThat(foreign).hasSize(3).doesNotHaveDuplicates();
            try (PolicyFeed late = new PolicyFeed(connection, CONFIG)) {
                assertThat(late.newestCommitted().orElseThrow().getVersion()).isEqualTo(2);
                assertSame(late.load(2), Weights.random(SHAPE, 2));
                assertSame(late.load(1), Weights.random(SHAPE, 1));
            }
        }
    }

    private void publish(PolicyVersion manifest) {
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(
                connection.topics().policyVersions(),
                VersionKey.of(manifest).bytes(),
                AvroSerde.of(PolicyVersion.class, connection.registry())
                        .serializer()
                        .serialize(connection.topics().policyVersions(), manifest)));
        producer.commitTransaction();
    }

    @Test
    void shouldRefuseAManifestWhoseChunksAreAnotherVersions() {
        publish(0, Weights.random(SHAPE, 0), fresh());
        PolicyVersion one = publish(1, Weights.random(SHAPE, 1), fresh());
        PolicyVersion half = PolicyVersion.newBuilder()
                .setRunId("run-1")
                .setEpoch(0)
                .setPolicyId("policy")
                .setVersion(2)
                .setParentVersion(1)
                .setBatchId(1)
                .setShape(one.getShape())
                .setTokenizerHash("t")
                .setWeights(one.getWeights())
                .setOptimizerSteps(0)
                .setRolloutsConsumed(0)
                .setTokensTrained(0)
                .setPublishedAtMs(0)
                .build();
        publish(half);

        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG)) {
            feed.awaitAtLeast(2, LIMIT);
            assertThatThrownBy(() -> feed.load(2))
                    .isInstanceOf(CorruptVersionException.class)
                    .hasMessageContaining(
                            "is incomplete: model.embed_tokens.weight has 0 of 2 chunks and 0 of 352 bytes");
            assertThatThrownBy(() -> feed.loadOptimizer(2))
                    .isInstanceOf(VersionUnavailableException.class)
                    .hasMessage("version 2 was published without the optimiser's state, so training cannot continue"
                            + " from it alone");
            assertSame(feed.load(1), Weights.random(SHAPE, 1));
        }
    }

    @Test
    void shouldSayAtOnceThatAVersionIsLostWhoseChunksLieBehindTheEndOfTheLog() {
        publish(0, Weights.random(SHAPE, 0), fresh());
        PolicyVersion one = publish(1, Weights.random(SHAPE, 1), fresh());
        TensorLocation weights = one.getWeights();
        publish(moved(one, 2, weights.getFirstOffset(), weights.getLastOffset() + 1_000));
        publish(moved(one, 3, weights.getFirstOffset() + 1_000, weights.getLastOffset() + 1_000));

        WeightsConfig patient = new WeightsConfig(
                "kafka", "", Dtype.F32, 4, 1, 0, 30_000, BrokenVersionPolicy.STOP, 256, 100, 3_600_000, 60_000);
        try (PolicyFeed feed = new PolicyFeed(connection, patient)) {
            feed.awaitAtLeast(3, LIMIT);
            for (long version : List.of(2L, 3L)) {
                assertThatThrownBy(() -> feed.load(version))
                        .isInstanceOf(VersionUnavailableException.class)
                        .hasMessageContaining("version " + version + " is lost: its chunks go on to offset "
                                + (weights.getLastOffset() + 1_000) + " of " + weights.getTopic()
                                + "-0, and the log ends at");
            }
        }
    }

    private static PolicyVersion moved(PolicyVersion like, long version, long firstOffset, long lastOffset) {
        return PolicyVersion.newBuilder(like)
                .setVersion(version)
                .setParentVersion(version - 1)
                .setWeights(TensorLocation.newBuilder(like.getWeights())
                        .setFirstOffset(firstOffset)
                        .setLastOffset(lastOffset)
                        .build())
                .setOptimizer(null)
                .build();
    }

    @Test
    void shouldSayThatAVersionIsNoLongerKept() throws Exception {
        PolicyVersion zero = publish(0, Weights.random(SHAPE, 0), fresh());
        publish(1, Weights.random(SHAPE, 1), fresh());
        deleteBefore(zero.getWeights().getFirstOffset() + 1);

        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG)) {
            feed.awaitAtLeast(1, LIMIT);
            assertThatThrownBy(() -> feed.load(0))
                    .isInstanceOf(VersionUnavailableException.class)
                    .hasMessageContaining("version 0 is no longer kept");
            assertSame(feed.load(1), Weights.random(SHAPE, 1));
        }
    }

    @Test
    void shouldPutAnAdapterUponNothingButItsOwnBaseAndSayWhereThatCannotBeHad() throws Exception {
        Weights model = Weights.random(SHAPE, 70);
        PolicyVersion zero = publish(0, model, fresh());
        LoraShape lora = new LoraShape(2, 4, List.of("q_proj", "up_proj"));
        AdamW optimizer = new AdamW(new AdamW.Config(0.9, 0.999, 1e-8, 0), lora.tensors(SHAPE));
        FrozenWeights base = new FrozenWeights(model, zero.getWeights().getSha256());
        PolicyVersion one = publish(1, model.copy().with(LoraAdapter.initial(lora, base, 3)), optimizer.state());
        FrozenWeights foreign = new FrozenWeights(model, "other");
        publish(2, model.copy().with(LoraAdapter.initial(lora, foreign, 3)), optimizer.state());

        assertThat(one.getWeights().getTensors()).hasSize(2 * 2);
        assertThat(one.getAdapter())
                .isEqualTo(new AdapterBase(2, 4.0, List.of("q_proj", "up_proj"), 0L, base.sha256()));
        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG)) {
            feed.awaitAtLeast(2, LIMIT);
            assertThat(feed.loadOptimizer(1).first().specs()).isEqualTo(lora.tensors(SHAPE));
            assertThatThrownBy(() -> feed.load(2))
                    .isInstanceOf(CorruptVersionException.class)
                    .hasMessageStartingWith(
                            "version 2 is an adapter upon version 0 with the weights other, and that has "
                                    + base.sha256());
            deleteBefore(zero.getWeights().getFirstOffset() + 1);
            assertThatThrownBy(() -> feed.load(1))
                    .isInstanceOf(VersionUnavailableException.class)
                    .hasMessageStartingWith("version 1 is an adapter upon version 0, which is not available: ");
        }
    }

    @Test
    void shouldKeepTheNewestVersionLoadedAheadOfBeingAsked() {
        publish(0, Weights.random(SHAPE, 0), fresh());
        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG);
                NewestWeights newest = new NewestWeights(feed, LIMIT)) {
            assertThat(newest.current().version()).isZero();
            publish(1, Weights.random(SHAPE, 1), fresh());
            publish(2, Weights.random(SHAPE, 2), fresh());
            await(() -> newest.current().version() == 2);
            assertSame(newest.current().weights(), Weights.random(SHAPE, 2));
        }
    }

    @Test
    void shouldServeTheVersionBeforeASuccessorWithoutWeightsAndNameAWayOut() {
        publish(0, Weights.random(SHAPE, 0), fresh());
        PolicyVersion one = publish(1, Weights.random(SHAPE, 1), fresh());
        WeightsConfig waiting = new WeightsConfig(
                "kafka", "", Dtype.F32, 4, 1, 0, 30_000, BrokenVersionPolicy.WAIT, 256, 100, 10_000, 60_000);
        try (PolicyFeed feed = new PolicyFeed(connection, waiting);
                NewestWeights served = new NewestWeights(feed, LIMIT)) {
            await(() -> served.current().version() == 1);
            publish(PolicyVersion.newBuilder(one)
                    .setVersion(2)
                    .setParentVersion(1)
                    .setBatchId(1)
                    .setWeights(TensorLocation.newBuilder(one.getWeights())
                            .setSha256("00")
                            .build())
                    .build());
            feed.awaitAtLeast(2, LIMIT);

            assertThatThrownBy(() -> new NewestWeights(feed, Duration.ofSeconds(1)))
                    .isInstanceOf(VersionUnavailableException.class)
                    .hasMessageStartingWith("version 2 of policy on ")
                    .hasMessageContaining(" is incomplete: ")
                    .hasMessageEndingWith(", and no later version was published within 1000 ms; \""
                            + connection.command("repair") + "\" fixes it");
            assertThat(served.current().version()).isEqualTo(1);
        }
    }

    @Test
    void shouldTakeUpAVersionOnlyWhenItIsSynced() throws Exception {
        publish(0, Weights.random(SHAPE, 0), fresh());
        Semaphore synced = new Semaphore(1);
        Semaphore prepared = new Semaphore(0);
        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG);
                NewestWeights newest =
                        new NewestWeights(feed, LIMIT, weights -> prepared.release(), synced::acquireUninterruptibly)) {
            publish(1, Weights.random(SHAPE, 1), fresh());
            assertThat(prepared.tryAcquire(2, 90, TimeUnit.SECONDS)).isTrue();
            assertThat(newest.current().version()).isZero();

            synced.release();
            await(() -> newest.current().version() == 1);
        }
    }

    @Test
    void shouldReadNothingFurtherWhileTwoVersionsAreHeldWhereThatIsAskedFor() {
        publish(0, Weights.random(SHAPE, 0), fresh());
        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG);
                NewestWeights newest = new NewestWeights(feed, LIMIT)) {
            newest.readOneAhead();
            publish(1, Weights.random(SHAPE, 1), fresh());
            newest.readOn(0);
            await(() -> newest.current().version() == 1);
            publish(2, Weights.random(SHAPE, 2), fresh());
            publish(3, Weights.random(SHAPE, 3), fresh());
            feed.awaitAtLeast(3, LIMIT);
            assertThat(newest.current().version()).isEqualTo(1);
            newest.readOn(1);
            await(() -> newest.current().version() == 3);
            assertSame(newest.current().weights(), Weights.random(SHAPE, 3));
        }
    }

    @Test
    void shouldWriteDeltasBetweenAnchorsAndGiveBackTheSameBits() {
        VersionWriter writer = new VersionWriter(connection, producer, CONFIG);
        List<Weights> published = publishDrifting(writer, 0, 6);

        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG)) {
            feed.awaitAtLeast(5, LIMIT);
            assertThat(LongStream.range(0, 6)
                            .mapToObj(v -> feed.manifest(v).getWeights().getAnchorVersion()))
                    .as("anchors are 0 and 4")
                    .containsExactly(null, 0L, 0L, 0L, null, 4L);
            assertThat(feed.manifest(1).getWeights().getTensors())
                    .extracting(tensor -> tensor.getEncoding())
                    .as("large tensors as deltas, those of 32 bytes whole")
                    .contains(TensorEncoding.DELTA, TensorEncoding.RAW);
            assertThat(feed.manifest(3).getOptimizer().getBaseVersion())
                    .as("the optimiser's state is whole")
                    .isNull();
            for (int version = 5; version >= 0; version--) {
                assertSame(feed.load(version), published.get(version));
            }
        }
        try (PolicyFeed late = new PolicyFeed(connection, CONFIG);
                NewestWeights joiner = new NewestWeights(late, LIMIT)) {
            await(() -> joiner.current().version() == 5);
            assertSame(joiner.current().weights(), published.get(5));
            Weights next = publishDrifting(writer, 6, 1, published.get(5)).get(0);
            await(() -> joiner.current().version() == 6);
            assertSame(joiner.current().weights(), next);
        }
    }

    /** A restarted writer continues the chain; a writer without a base begins a new one. */
    @Test
    void shouldGoOnWithTheChainOfAKilledLearner() {
        List<Weights> published =
                new ArrayList<>(publishDrifting(new VersionWriter(connection, producer, CONFIG), 0, 2));
        producer.beginTransaction();
        new VersionWriter(connection, producer, CONFIG)
                .write(new VersionFacts(2, 1, "t", 0, 0, 0), Weights.random(SHAPE, 50), fresh());
        producer.flush();
        producer.close(Duration.ZERO);
        producer = producer();
        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG)) {
            PolicyVersion newest = feed.newestCommitted().orElseThrow();
            VersionWriter again = new VersionWriter(connection, producer, CONFIG);
            again.continueFrom(newest, feed.load(newest.getVersion()));
            published.addAll(publishDrifting(again, 2, 3, published.get(1)));
        }
        published.addAll(publishDrifting(new VersionWriter(connection, producer, CONFIG), 5, 2, published.get(4)));

        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG)) {
            feed.awaitAtLeast(6, LIMIT);
            assertThat(LongStream.range(0, 7)
                            .mapToObj(v -> feed.manifest(v).getWeights().getAnchorVersion()))
                    .containsExactly(null, 0L, 0L, 0L, null, null, 5L);
            for (int version = 0; version < 7; version++) {
                assertSame(feed.load(version), published.get(version));
            }
        }
    }

    @Test
    void shouldWaitForTheNextAnchorOrStopWhenALinkIsMissing() throws Exception {
        VersionWriter writer = new VersionWriter(connection, producer, CONFIG);
        List<Weights> published = publishDrifting(writer, 0, 3);
        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG)) {
            feed.awaitAtLeast(2, LIMIT);
            deleteBefore(feed.manifest(1).getWeights().getFirstOffset());
        }
        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG)) {
            feed.awaitAtLeast(2, LIMIT);
            assertThatThrownBy(() -> new NewestWeights(feed, LIMIT))
                    .isInstanceOf(VersionUnavailableException.class)
                    .hasMessageStartingWith(
                            "version 2 cannot be put together without its link, version 0: version 0 is no longer"
                                    + " kept");
        }
        WeightsConfig waiting = new WeightsConfig(
                "kafka", "", Dtype.F32, 4, 1, 0, 30_000, BrokenVersionPolicy.WAIT, 256, 100, 10_000, 60_000);
        try (PolicyFeed feed = new PolicyFeed(connection, waiting)) {
            feed.awaitAtLeast(2, LIMIT);
            CompletableFuture<NewestWeights> joining =
                    CompletableFuture.supplyAsync(() -> new NewestWeights(feed, LIMIT));
            Weights three = publishDrifting(writer, 3, 1, published.get(2)).get(0);
            publishDrifting(writer, 4, 1, three);
            try (NewestWeights newest = joining.get(90, TimeUnit.SECONDS)) {
                assertThat(newest.current().version()).as("the next anchor").isEqualTo(4);
            }
        }
    }

    /** One reader follows from the beginning, others join late; attempts that come to nothing lie between the versions. */
    @Test
    void shouldGiveEveryReaderTheSameBitsWhileVersionsAreWritten() {
        VersionWriter writer = new VersionWriter(connection, producer, CONFIG);
        List<Weights> published = new ArrayList<>(publishDrifting(writer, 0, 1));
        List<PolicyFeed> feeds = new ArrayList<>();
        List<NewestWeights> readers = new ArrayList<>();
        Map<Long, Weights> seen = new HashMap<>();
        try {
            for (int version = 1; version < 16; version++) {
                if (version % 5 == 1) {
                    feeds.add(new PolicyFeed(connection, CONFIG));
                    readers.add(new NewestWeights(feeds.get(feeds.size() - 1), LIMIT));
                }
                producer.beginTransaction();
                writer.write(
                        new VersionFacts(version, version - 1, "t", 0, 0, 0),
                        Weights.random(SHAPE, 90 + version),
                        fresh());
                producer.flush(); // so that the manifest lies there too
                producer.abortTransaction();
                published.addAll(publishDrifting(writer, version, 1, published.get(version - 1)));
                for (NewestWeights reader : readers) {
                    NewestWeights.Loaded now = reader.current();
                    seen.put(now.version(), now.weights());
                }
            }
            for (NewestWeights reader : readers) {
                await(() -> reader.current().version() == 15);
                assertSame(reader.current().weights(), published.get(15));
            }
            seen.forEach((version, weights) -> assertSame(weights, published.get(version.intValue())));
        } finally {
            readers.forEach(NewestWeights::close);
            feeds.forEach(PolicyFeed::close);
        }
    }

    @Test
    void shouldKeepTheOptimizersStateElsewhereThanTheWeightsWhereItIsToldTo(@TempDir Path store) {
        WeightsConfig split = new WeightsConfig(
                "kafka",
                store.toUri().toString(),
                Dtype.F32,
                1,
                1,
                0,
                30_000,
                BrokenVersionPolicy.STOP,
                256,
                100,
                10_000,
                60_000);
        Weights weights = Weights.random(SHAPE, 1);
        AdamW optimizer = afterOneStep(weights);
        producer.beginTransaction();
        PolicyVersion manifest = new VersionWriter(connection, producer, split)
                .write(new VersionFacts(0, -1, "t", 0, 0, 0), weights, optimizer.state());
        producer.commitTransaction();
        assertThat(manifest.getWeights().getUri()).isNull();
        assertThat(manifest.getOptimizer().getUri()).startsWith(store.toUri().toString());
        try (PolicyFeed feed = new PolicyFeed(connection, split)) {
            feed.awaitAtLeast(0, LIMIT);
            assertSame(feed.load(0), weights);
            assertThat(feed.loadOptimizer(0).first().bytes("model.norm.weight"))
                    .isEqualTo(optimizer.state().first().bytes("model.norm.weight"));
        }
        try (PolicyFeed uninformed = new PolicyFeed(connection, CONFIG)) {
            uninformed.awaitAtLeast(0, LIMIT);
            assertThatThrownBy(() -> uninformed.loadOptimizer(0))
                    .hasMessageEndingWith(
                            "but weights.store is kafka here; give every role of the run the same weights.store");
        }
    }

    @Test
    void shouldNameFilesInTheManifestWhereTheStoreIsADirectory(@TempDir Path store) throws Exception {
        WeightsConfig files = new WeightsConfig(
                store.toUri().toString(),
                "",
                Dtype.F32,
                3,
                1,
                0,
                30_000,
                BrokenVersionPolicy.STOP,
                256,
                100,
                10_000,
                60_000);
        List<Weights> published = publishDrifting(new VersionWriter(connection, producer, files), 0, 4);
        // killed between object and commit; the step that is repeated finds its object
        Weights last = published.get(3).copy();
        producer.beginTransaction();
        new VersionWriter(connection, producer, files).write(new VersionFacts(4, 3, "t", 0, 0, 0), last, fresh());
        producer.close(Duration.ZERO);
        producer = producer();
        producer.beginTransaction();
        new VersionWriter(connection, producer, files).write(new VersionFacts(4, 3, "t", 0, 0, 0), last, fresh());
        producer.commitTransaction();

        try (PolicyFeed feed = new PolicyFeed(connection, files)) {
            PolicyVersion four = feed.awaitAtLeast(4, LIMIT);
            assertThat(four.getWeights().getTopic()).isEmpty();
            assertThat(four.getWeights().getUri()).startsWith(store.toUri() + "run-1/0/policy/000000004-weights-");
            assertThat(feed.manifest(2).getWeights().getBaseVersion()).isEqualTo(1);
            for (int version = 0; version < 4; version++) {
                assertSame(feed.load(version), published.get(version));
            }
            assertSame(feed.load(4), last);
            assertThat(feed.loadOptimizer(4).steps()).isZero();

            Path two = Path.of(URI.create(feed.manifest(2).getWeights().getUri()));
            byte[] bytes = Files.readAllBytes(two);
            bytes[bytes.length - 1] ^= 1;
            Files.write(two, bytes);
            assertThatThrownBy(() -> feed.load(2))
                    .isInstanceOf(CorruptVersionException.class)
                    .hasMessageContaining("has other bytes in model.norm.weight");
            Files.write(two, Arrays.copyOf(bytes, bytes.length - 1));
            assertThatThrownBy(() -> feed.load(2))
                    .isInstanceOf(CorruptVersionException.class)
                    .hasMessageContaining("is incomplete: it ends within model.norm.weight, after 31 of 32 bytes");
            Files.delete(two);
            assertThatThrownBy(() -> feed.load(2))
                    .isInstanceOf(VersionUnavailableException.class)
                    .hasMessage("version 2 is no longer kept: there is no " + two.toUri());
            assertSame(feed.load(1), published.get(1));
        }
        try (PolicyFeed feed = new PolicyFeed(connection, CONFIG)) {
            feed.awaitAtLeast(4, LIMIT);
            assertThatThrownBy(() -> feed.load(4))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageEndingWith(
                            "but weights.store is kafka here; give every role of the run the same weights.store");
        }
    }

    private List<Weights> publishDrifting(VersionWriter writer, long first, int count) {
        return publishDrifting(writer, first, count, Weights.random(SHAPE, 7));
    }

    /** Publishes versions that each differ a little from the one before; returns copies of the published weights. */
    private List<Weights> publishDrifting(VersionWriter writer, long first, int count, Weights from) {
        Weights weights = from.copy();
        List<Weights> published = new ArrayList<>();
        for (long version = first; version < first + count; version++) {
            for (TensorSpec spec : SHAPE.tensors()) {
                FloatBuffer tensor = weights.tensor(spec.name());
                for (int i = 0; i < tensor.capacity(); i++) {
                    tensor.put(i, tensor.get(i) * (1 + 1e-5f * (version + i % 3)));
                }
            }
            producer.beginTransaction();
            PolicyVersion manifest =
                    writer.write(new VersionFacts(version, version - 1, "t", 0, 0, 0), weights, fresh());
            producer.commitTransaction();
            writer.continueFrom(manifest, weights);
            published.add(weights.copy());
        }
        return published;
    }

    private void deleteBefore(long offset) throws Exception {
        try (Admin admin = Admin.create(connection.admin())) {
            admin.deleteRecords(Map.of(
                            new TopicPartition(connection.topics().weights(), 0), RecordsToDelete.beforeOffset(offset)))
                    .all()
                    .get(90, TimeUnit.SECONDS);
        }
    }

    private static void await(BooleanSupplier condition) {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("waited for %s", LIMIT).isLessThan(deadline);
            LockSupport.parkNanos(1_000_000);
        }
    }

    private PolicyVersion publish(long version, Weights weights, AdamW.State optimizer) {
        producer.beginTransaction();
        PolicyVersion manifest = write(connection, producer, version, weights, optimizer);
        producer.commitTransaction();
        return manifest;
    }

    private static PolicyVersion write(
            LogConnection connection,
            KafkaProducer<byte[], byte[]> producer,
            long version,
            Weights weights,
            AdamW.State optimizer) {
        return new VersionWriter(connection, producer, CONFIG)
                .write(
                        new VersionFacts(version, version - 1, "t", 8 * version, 64 * version, 1000 + version),
                        weights,
                        optimizer);
    }

    private KafkaProducer<byte[], byte[]> producer() {
        KafkaProducer<byte[], byte[]> made =
                new KafkaProducer<>(
                        connection.producer(Map.of("transactional.id", connection.scoped("learner"))),
                        new ByteArraySerializer(),
                        new ByteArraySerializer()) {
                    @Override
                    public Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> sent, Callback callback) {
                        return super.send(sent, (where, failure) -> {
                            acknowledged.add(where + (failure == null ? " written" : " " + failure));
                            if (callback != null) {
                                callback.onCompletion(where, failure);
                            }
                        });
                    }
                };
        made.initTransactions();
        return made;
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return new ProducerRecord<>(topic, bytes, bytes);
    }

    private static AdamW.State fresh() {
        return new AdamW(new AdamW.Config(0.9, 0.999, 1e-8, 0), SHAPE).state();
    }

    private static AdamW afterOneStep(Weights weights) {
        AdamW optimizer = new AdamW(new AdamW.Config(0.9, 0.999, 1e-8, 0), SHAPE);
        step(optimizer, weights);
        return optimizer;
    }

    private static void step(AdamW optimizer, Weights weights) {
        Gradients gradients = new Gradients(SHAPE);
        for (TensorSpec spec : SHAPE.tensors()) {
            FloatBuffer gradient = gradients.tensor(spec.name());
            for (int i = 0; i < gradient.limit(); i++) {
                gradient.put(i, 0.01f * (i + 1));
            }
        }
        optimizer.step(weights, gradients, 1e-3);
    }

    private static void assertSame(Weights found, Weights expected) {
        for (TensorSpec spec : SHAPE.tensors()) {
            assertThat(found.bytes(spec.name())).as(spec.name()).isEqualTo(expected.bytes(spec.name()));
        }
    }
}
