package dev.millrace.log.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.Alarm;
import dev.millrace.log.ContentTopic;
import dev.millrace.log.LogConnection;
import dev.millrace.log.registry.LogSchemaRegistry;
import dev.millrace.log.transaction.LogTable;
import dev.millrace.schemas.EpochParent;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.RunClaim;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.run.ClaimKey;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
class RunLogIT {
    private static final TopicsConfig CONFIG = TopicsConfig.defaults();

    @TempDir
    private static Path directory;

    private static EmbeddedBroker broker;
    private static Map<String, Object> client;

    @BeforeAll
    static void startBroker() {
        broker = EmbeddedBroker.start(directory);
        client = Map.of("bootstrap.servers", broker.bootstrapServers());
    }

    @AfterAll
    static void stopBroker() {
        broker.close();
    }

    @Test
    void shouldCreateARunThenGoOnWithItThenLetOthersJoin() {
        RunTopics topics = new RunTopics("a.");
        RunIdentity run = new RunIdentity("run-a", 0, "default");

        try (RunLog created = open(topics, run)) {
            assertThat(created.resumed()).isFalse();
            assertThat(created.connection().run()).isEqualTo(run);
            assertThat(created.registryContents().orElseThrow().subjects())
                    .contains("a.rollouts-value", "a.weights-value", "a.run-value")
                    .doesNotContain("a.dead-letters-value", "a.rewards-value");
        }
        try (RunLog resumed = open(topics, run);
                RunLog joined = RunLog.join(client, topics, run, CONFIG, "")) {
            assertThat(resumed.resumed()).isTrue();
            Serving serving = new Serving(
                    "run-a",
                    0,
                    "generator-0",
                    ServerRole.GENERATOR,
                    "default",
                    1L,
                    2L,
                    3L,
                    4L,
                    null,
                    false,
                    null,
                    List.of(),
                    null);
            byte[] bytes = AvroSerde.of(Serving.class, resumed.connection().registry())
                    .serializer()
                    .serialize(topics.serving(), serving);
            assertThat(AvroSerde.of(Serving.class, joined.connection().registry())
                            .deserializer()
                            .deserialize(topics.serving(), bytes))
                    .isEqualTo(serving);
        }
    }

    @Test
    void shouldKeepTheConfigurationThatTheRunWasCreatedWith() {
        RunTopics topics = new RunTopics("configured.");
        RunIdentity run = new RunIdentity("run-f", 0, "default");
        assertThat(RunLog.look(client, topics, CONFIG, "")).isEmpty();

        try (RunLog created = open(topics, run, "eta: 1");
                RunLog later = open(topics, run, "eta: 2")) {
            assertThat(created.claim().configuration()).contains("eta: 1");
            assertThat(later.claim().configuration()).as("the creator's counts").contains("eta: 1");
            later.reconfigure("eta: 3", Clock.systemUTC());
        }

        try (RunLog joined = RunLog.join(client, topics, run, CONFIG, "")) {
            assertThat(joined.claim().configuration()).contains("eta: 3");
        }
        assertThat(RunLog.look(client, topics, CONFIG, "").orElseThrow().configuration())
                .contains("eta: 3");
        try (RunLog log = open(topics, run, "eta: 4")) {
            RunLog nextEpoch = log.beginEpoch(parent(0, 7), CONFIG, Clock.systemUTC());
            assertThat(nextEpoch.claim().configuration())
                    .as("an epoch changes no setting")
                    .contains("eta: 3");
        }
    }

    @Test
    void shouldRecordTheClusterAndTheIdentitiesOfTheTopics() throws Exception {
        RunTopics topics = new RunTopics("placed.");
        RunIdentity run = new RunIdentity("run-p", 0, "default");
        open(topics, run, "eta: 1").close();

        ClaimedRun claim = RunLog.look(client, topics, CONFIG, "").orElseThrow();
        try (Admin admin = Admin.create(client)) {
            assertThat(claim.place().clusterId())
                    .isEqualTo(admin.describeCluster().clusterId().get(90, TimeUnit.SECONDS));
            String rollouts = topics.rollouts();
            assertThat(claim.place().topicIds())
                    .containsOnlyKeys(Stream.concat(
                                    topics.required().stream(),
                                    Stream.of(
                                            topics.admission(),
                                            topics.sessions(),
                                            topics.files(),
                                            topics.evaluations()))
                            .toList())
                    .containsEntry(
                            rollouts,
                            admin.describeTopics(List.of(rollouts))
                                    .allTopicNames()
                                    .get(90, TimeUnit.SECONDS)
                                    .get(rollouts)
                                    .topicId()
                                    .toString());
        }
    }

    @Test
    void shouldKeepFilesInPiecesAndHandOutNothingElse() {
        RunTopics topics = new RunTopics("files.");
        try (RunLog log = open(topics, new RunIdentity("run-f", 0, "default"), "eta: 1")) {
            ContentTopic files = new ContentTopic(log.connection(), 30_000);
            byte[] large = new byte[(3 << 19) + 7];
            new Random(3).nextBytes(large);
            byte[] small = "{}".getBytes(StandardCharsets.UTF_8);
            byte[] empty = {};
            Set<String> hashes = Set.of(ContentTopic.hash(large), ContentTopic.hash(small), ContentTopic.hash(empty));
            assertThat(files.find(hashes)).isEmpty();
            files.keep(List.of(large, small, empty));
            assertThat(files.find(hashes))
                    .containsOnlyKeys(hashes)
                    .containsEntry(ContentTopic.hash(large), large)
                    .containsEntry(ContentTopic.hash(small), small)
                    .containsEntry(ContentTopic.hash(empty), empty);

            Map<String, byte[]> there = table(topics.files());
            assertThat(there)
                    .hasSize(4 + 1 + 1)
                    .allSatisfy((key, piece) -> assertThat(piece.length).isLessThanOrEqualTo(512 << 10));
            files.keep(List.of(small, large));
            assertThat(table(topics.files())).as("written once").hasSize(there.size());

            String third = ContentTopic.hash(large) + "/2/4";
            put(topics.files(), third, new byte[] {1});
            assertThat(files.find(hashes)).as("a piece that somebody changed").hasSize(2);
            files.keep(List.of(large));
            assertThat(files.find(hashes)).as("mended by who has it").hasSize(3);
            put(topics.files(), third, null);
            assertThat(files.find(hashes)).as("a piece that is gone").hasSize(2);
        }
    }

    private Map<String, byte[]> table(String topic) {
        Map<String, byte[]> byKey = new HashMap<>();
        try (LogTable table = new LogTable(client, topic, 30_000, byKey::put)) {
            table.catchUp();
        }
        return byKey;
    }

    private void put(String topic, String key, byte[] value) {
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(client, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.send(new ProducerRecord<>(topic, 0, key.getBytes(StandardCharsets.UTF_8), value));
        }
    }

    @Test
    void shouldKeepTheClaimOfEveryEpoch() {
        RunTopics topics = new RunTopics("kept.");
        open(topics, new RunIdentity("run-k", 0, "default"), "eta: 1").close();
        try (RunLog log = open(topics, new RunIdentity("run-k", 0, "default"), "eta: 2")) {
            log.beginEpoch(parent(0, 7), CONFIG, Clock.systemUTC());
        }

        Map<String, RunClaim> byKey = new HashMap<>();
        try (LogSchemaRegistry registry = LogSchemaRegistry.reading(client, CONFIG.schemasTopic(), 30_000);
                LogTable table = new LogTable(
                        client, topics.run(), 30_000, (key, value) -> byKey.put(key, claim(registry, topics, value)))) {
            table.catchUp();
        }

        assertThat(byKey).containsOnlyKeys(ClaimKey.VALID, ClaimKey.epoch(0), ClaimKey.epoch(1));
        assertThat(byKey.get(ClaimKey.epoch(0)).getConfiguration()).isEqualTo("eta: 1");
        assertThat(byKey.get(ClaimKey.epoch(1))).isEqualTo(byKey.get(ClaimKey.VALID));
    }

    private static RunClaim claim(LogSchemaRegistry registry, RunTopics topics, byte[] value) {
        return AvroSerde.of(RunClaim.class, registry).deserializer().deserialize(topics.run(), value);
    }

    @Test
    void shouldKnowNoConfigurationWhereNoneWasRecorded() {
        RunTopics topics = new RunTopics("unrecorded.");
        RunIdentity run = new RunIdentity("run-g", 0, "default");
        open(topics, run).close();
        try (RunLog later = open(topics, run, "eta: 2")) {
            assertThat(later.claim().configuration()).isEmpty();
        }
    }

    @Test
    void shouldRefuseASecondRunUnderTheSamePrefixAndTakeItUnderAnother() {
        RunTopics topics = new RunTopics("b.");
        open(topics, new RunIdentity("run-b", 0, "default")).close();

        assertThatThrownBy(() -> open(topics, new RunIdentity("run-c", 0, "default")))
                .isInstanceOf(LogSetupException.class)
                .hasMessage("the topics under 'b.' belong to run run-b, not to run run-c; continue that run, or"
                        + " choose another topic prefix");
        assertThatThrownBy(() -> RunLog.join(client, topics, new RunIdentity("run-c", 0, "default"), CONFIG, ""))
                .isInstanceOf(LogSetupException.class)
                .hasMessageContaining("belong to run run-b");
        assertThatThrownBy(() -> open(topics, new RunIdentity("run-b", 0, "other")))
                .isInstanceOf(LogSetupException.class)
                .hasMessageContaining("trains the policy default, not other");

        try (RunLog other = open(new RunTopics("c."), new RunIdentity("run-c", 0, "default"))) {
            assertThat(other.resumed()).isFalse();
        }
    }

    @Test
    void shouldGoOnToALaterEpochAndNeverBack() {
        RunTopics topics = new RunTopics("epochs.");
        RunIdentity run = new RunIdentity("run-e", 0, "default");
        try (RunLog log = open(topics, run)) {
            LogConnection next =
                    log.beginEpoch(parent(0, 7), CONFIG, Clock.systemUTC()).connection();

            assertThat(next.run().epoch()).isEqualTo(1);
            assertThat(next.lineage().ancestors()).containsExactly(new Ancestor(0, 7, "00ff"));
            assertThat(next.lineage().beganAt())
                    .containsEntry(topics.rollouts() + "-0", 0L)
                    .doesNotContainKey(topics.run() + "-0");
            assertThat(next.group("scorer")).isEqualTo("epochs.scorer-1");
            assertThatThrownBy(() -> log.beginEpoch(parent(0, 6), CONFIG, Clock.systemUTC()))
                    .isInstanceOf(LogSetupException.class)
                    .hasMessage("run run-e is at epoch 1, not at epoch 0");
        }

        try (RunLog goesOn = open(topics, run)) {
            assertThat(goesOn.resumed()).isTrue();
            assertThat(goesOn.connection().run().epoch()).as("found on the log").isEqualTo(1);
            assertThat(goesOn.connection().lineage().parent()).contains(new Ancestor(0, 7, "00ff"));
        }
        assertThatThrownBy(() -> open(topics, new RunIdentity("run-e", 3, "default")))
                .isInstanceOf(LogSetupException.class)
                .hasMessage("run run-e is at epoch 1, and no epoch 3 was begun; millrace rollback begins one");
        assertThatThrownBy(() -> RunLog.join(client, topics, new RunIdentity("run-e", 2, "default"), CONFIG, ""))
                .isInstanceOf(LogSetupException.class)
                .hasMessage("run run-e is at epoch 1, and no epoch 2 was begun; millrace rollback begins one");
    }

    @Test
    void shouldLetOneOfManyRunsWinAPrefix() throws Exception {
        RunTopics topics = new RunTopics("contested.");
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<String> winners = new ArrayList<>();
        try {
            List<Callable<String>> contenders = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                String runId = "run-" + i;
                contenders.add(() -> {
                    open(topics, new RunIdentity(runId, 0, "default")).close();
                    return runId;
                });
            }
            for (Future<String> result : pool.invokeAll(contenders, 90, TimeUnit.SECONDS)) {
                try {
                    winners.add(result.get());
                } catch (ExecutionException e) {
                    assertThat(e.getCause())
                            .isInstanceOf(LogSetupException.class)
                            .hasMessageContaining("belong to run");
                }
            }
        } finally {
            pool.shutdownNow();
        }

        assertThat(winners).hasSize(1);
        open(topics, new RunIdentity(winners.get(0), 0, "default")).close();
    }

    @Test
    void shouldRefuseTopicsThatNobodyClaims() throws Exception {
        try (TopicAdministration administration = new TopicAdministration(client, CONFIG)) {
            administration.prepare(List.of(new TopicSettings("orphan.rollouts", 4, Map.of())));
        }

        assertThatThrownBy(() -> open(new RunTopics("orphan."), new RunIdentity("r", 0, "default")))
                .isInstanceOf(LogSetupException.class)
                .hasMessage("topics [orphan.rollouts] exist without orphan.run, which names their run; delete them,"
                        + " or choose another topic prefix than 'orphan.'");
    }

    @Test
    void shouldPassOverGarbageUnderTheKeyOfTheClaimAndWriteTheClaimAgain() throws Exception {
        RunTopics topics = new RunTopics("garbage.");
        RunIdentity run = new RunIdentity("r", 0, "default");
        open(topics, run, "eta: 1").close();
        byte[] claim = lastClaim(topics);

        for (byte[] garbage : Arrays.asList(new byte[] {1, 2, 3, 4, 5, 6}, new byte[0], null, otherClaim(topics))) {
            write(topics, garbage);
            assertThat(RunLog.look(client, topics, CONFIG, "").orElseThrow().run())
                    .isEqualTo(run);
            try (RunLog again = open(topics, run)) {
                assertThat(again.claim().configuration()).contains("eta: 1");
            }
            assertThat(lastClaim(topics))
                    .as("compaction keeps the last one only")
                    .isEqualTo(claim);
        }
    }

    @Test
    void shouldRefuseATopicOfClaimsThatHoldsGarbageOnly() throws Exception {
        RunTopics topics = new RunTopics("only-garbage.");
        try (TopicAdministration administration = new TopicAdministration(client, CONFIG)) {
            administration.prepare(List.of(new TopicSettings(topics.run(), 1, Map.of("cleanup.policy", "compact"))));
        }
        write(topics, new byte[] {1, 2, 3, 4, 5, 6});

        assertThatThrownBy(() -> open(topics, new RunIdentity("r", 0, "default")))
                .isInstanceOf(LogSetupException.class)
                .hasMessage("topic only-garbage.run does not hold a claim: not a RunClaim (topic only-garbage.run): "
                        + "the first byte is 1 in place of 0");
    }

    @Test
    void shouldTellAGroupThatLostItsOffsetsFromOneThatHasDoneNothing() throws Exception {
        RunTopics topics = new RunTopics("offsets.");
        RunIdentity run = new RunIdentity("run-o", 0, "default");
        try (RunLog log = open(topics, run);
                Admin admin = Admin.create(client);
                KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                        log.connection().producer(Map.of()), new ByteArraySerializer(), new ByteArraySerializer())) {
            LogConnection connection = log.connection();
            assertThat(LostOffsets.ROLES)
                    .as("of a run that has just begun")
                    .allMatch(role -> LostOffsets.of(connection, role, Set.copyOf(topics.required()))
                            .isEmpty());
            Score score = new Score(
                    "run-o",
                    0,
                    "0-1/0",
                    "0-1",
                    "scorer-0",
                    new LogCoordinates(topics.rollouts(), 0, 7L),
                    List.of(),
                    null,
                    1L,
                    null);
            for (Score each : List.of(
                    Score.newBuilder(score).setRunId("another").build(),
                    Score.newBuilder(score).setEpoch(1).build())) {
                send(producer, log, each);
            }
            producer.send(new ProducerRecord<>(topics.scores(), new byte[] {1, 2, 3}))
                    .get();
            LostOffsets.requireNone(connection, "scorer"); // none of them is this epoch's

            send(producer, log, score);
            assertThatThrownBy(() -> LostOffsets.requireNone(connection, "scorer"))
                    .isInstanceOf(LogSetupException.class)
                    .hasMessage("cannot start the scorer, which would repeat all of its work: consumer group"
                            + " offsets.scorer has no committed offsets of offsets.rollouts, and offsets.scores has records"
                            + " of the scorer; a cluster deletes the offsets of a group that has had no member for"
                            + " offsets.retention.minutes (7 days by default), and those of a deleted topic; "
                            + connection.command("repair --do new-epoch") + " continues from the newest version");

            admin.alterConsumerGroupOffsets(
                            connection.group("scorer"),
                            Map.of(new TopicPartition(topics.rollouts(), 0), new OffsetAndMetadata(0)))
                    .all()
                    .get(90, TimeUnit.SECONDS);
            LostOffsets.requireNone(connection, "scorer");
        }
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, RunLog log, Score score) throws Exception {
        String topic = log.connection().topics().scores();
        producer.send(new ProducerRecord<>(
                        topic,
                        AvroSerde.of(Score.class, log.connection().registry())
                                .serializer()
                                .serialize(topic, score)))
                .get();
    }

    @Test
    void shouldNameWhatBecameOfClusterTopicsAndEnds() throws Exception {
        RunTopics topics = new RunTopics("cause.");
        RunIdentity run = new RunIdentity("run-c", 0, "default");
        String command = "millrace repair --bootstrap-servers " + broker.bootstrapServers() + " --topic-prefix cause.";
        String repair = "; " + command + " lists the losses and the repairs";
        try (RunLog log = open(topics, run);
                Admin admin = Admin.create(client)) {
            assertThat(RootCause.of(log.connection())).isEmpty();
            PlaceWatch watch = new PlaceWatch(log.connection());
            watch.look();
            assertThat(log.connection().alarms().active()).isEmpty();

            admin.alterConsumerGroupOffsets(
                            log.connection().group("learner"),
                            Map.of(new TopicPartition(topics.batches(), 0), new OffsetAndMetadata(7)))
                    .all()
                    .get(90, TimeUnit.SECONDS);
            assertThat(RootCause.of(log.connection()))
                    .hasValue(
                            "cause.batches-0 ends at offset 0, and the learner had read it up to offset 7: its last 7 offsets"
                                    + " are lost, as after a power loss or an unclean leader election"
                                    + repair);

            ClaimedRun before = log.claim();
            loseAll(admin, topics.run());
            assertThatThrownBy(() -> RunLog.find(client, topics, CONFIG, "")).hasMessageContaining("lost its end");
            watch.look();
            try (RunLog again = RunLog.find(client, topics, CONFIG, "")) {
                assertThat(again.claim().run()).isEqualTo(before.run());
                assertThat(again.claim().configuration()).isEqualTo(before.configuration());
                assertThat(again.claim().place()).isEqualTo(before.place());
                assertThat(again.claim().epochs()).isEqualTo(before.epochs());
            }

            delete(admin, topics.scores());
            assertThat(RootCause.of(log.connection()))
                    .hasValue("topics of run run-c were deleted: [cause.scores]" + repair);
            watch.look();
            assertThat(log.connection().alarms().active())
                    .extracting(Alarm::name, Alarm::subject, Alarm::remedy)
                    .containsExactly(tuple("topic-deleted", "cause.scores", command));

            open(topics, run).close();
            assertThat(RootCause.of(log.connection()))
                    .hasValue("topics of run run-c were deleted and recreated, and their records are lost:"
                            + " [cause.scores]" + repair);
            watch.look();
            assertThat(log.connection().alarms().active())
                    .extracting(Alarm::name, Alarm::subject, Alarm::remedy)
                    .containsExactly(tuple("topic-replaced", "cause.scores", command));

            RunClaim claim = deserialized(log.connection(), lastClaim(topics));
            claim.put(claim.getSchema().getField("cluster_id").pos(), "another");
            write(
                    topics,
                    AvroSerde.of(RunClaim.class, log.connection().registry())
                            .serializer()
                            .serialize(topics.run(), claim));
            assertThat(RootCause.of(log.connection()).orElseThrow())
                    .startsWith("the cluster at " + broker.bootstrapServers() + " is ")
                    .contains(", and run run-c is on another: ");
            watch.look();
            assertThat(log.connection().alarms().active())
                    .extracting(Alarm::name)
                    .containsExactly("other-cluster", "topic-replaced");

            delete(admin, topics.run());
            assertThat(RootCause.of(log.connection()).orElseThrow())
                    .startsWith("there is no topic cause.run with the run's claim any more: it was deleted, or");
        }
    }

    /** All records of a compacted topic, as with its end after a power loss. */
    private static void loseAll(Admin admin, String topic) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        for (String policy : List.of("delete", "compact")) {
            admin.incrementalAlterConfigs(Map.of(
                            resource,
                            List.of(new AlterConfigOp(
                                    new ConfigEntry("cleanup.policy", policy), AlterConfigOp.OpType.SET))))
                    .all()
                    .get(90, TimeUnit.SECONDS);
            if (policy.equals("delete")) {
                admin.deleteRecords(Map.of(new TopicPartition(topic, 0), RecordsToDelete.beforeOffset(-1)))
                        .all()
                        .get(90, TimeUnit.SECONDS);
            }
        }
    }

    private static void delete(Admin admin, String topic) throws Exception {
        admin.deleteTopics(List.of(topic)).all().get(90, TimeUnit.SECONDS);
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
        while (admin.listTopics().names().get(90, TimeUnit.SECONDS).contains(topic)) {
            assertThat(System.nanoTime()).as("waited for the end of " + topic).isLessThan(deadline);
        }
    }

    private static void write(RunTopics topics, byte[] value) throws Exception {
        try (KafkaProducer<String, byte[]> producer =
                new KafkaProducer<>(client, new StringSerializer(), new ByteArraySerializer())) {
            producer.send(new ProducerRecord<>(topics.run(), ClaimKey.VALID, value))
                    .get(90, TimeUnit.SECONDS);
        }
    }

    private static byte[] lastClaim(RunTopics topics) {
        AtomicReference<byte[]> last = new AtomicReference<>();
        try (LogTable table = new LogTable(client, topics.run(), 10_000, (key, value) -> {
            if (key.equals(ClaimKey.VALID)) {
                last.set(value);
            }
        })) {
            table.catchUp();
        }
        return last.get();
    }

    private static RunClaim deserialized(LogConnection connection, byte[] claim) {
        return AvroSerde.of(RunClaim.class, connection.registry())
                .deserializer()
                .deserialize(connection.topics().run(), claim);
    }

    /** The claim as another run would write it. */
    private static byte[] otherClaim(RunTopics topics) {
        try (RunLog found = RunLog.find(client, topics, CONFIG, "")) {
            RunClaim claim = deserialized(found.connection(), lastClaim(topics));
            claim.put(claim.getSchema().getField("run_id").pos(), "another");
            return AvroSerde.of(RunClaim.class, found.connection().registry())
                    .serializer()
                    .serialize(topics.run(), claim);
        }
    }

    @Test
    void shouldSayThatThereIsNoRunToJoin() {
        RunTopics none = new RunTopics("none.");
        assertThatThrownBy(() -> RunLog.join(client, none, new RunIdentity("r", 0, "default"), CONFIG, ""))
                .isInstanceOf(LogSetupException.class)
                .hasMessageStartingWith("there is no run under the topic prefix 'none.': topics [none.batches,");
    }

    @Test
    void shouldCarryTheRecordLimitToProducers() {
        try (RunLog log = open(new RunTopics("limits."), new RunIdentity("r", 0, "default"))) {
            assertThat(log.connection().clientProperties()).containsEntry("max.request.size", 8 << 20);
        }
    }

    private static EpochParent parent(int epoch, long version) {
        return new EpochParent(epoch, version, "00ff", "why not");
    }

    private static RunLog open(RunTopics topics, RunIdentity run, String configuration) {
        return RunLog.open(
                client,
                topics,
                new RunLog.NewRun(run, Set.of(), Optional.of(configuration)),
                CONFIG,
                "",
                Clock.systemUTC());
    }

    private static RunLog open(RunTopics topics, RunIdentity run) {
        return RunLog.open(client, topics, run, CONFIG, "", Clock.systemUTC());
    }
}
