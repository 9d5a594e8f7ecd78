package dev.millrace.runtime.rights;

import static dev.millrace.topology.RunOnBroker.settled;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.log.SecretSettings;
import dev.millrace.log.SecretText;
import dev.millrace.log.run.CheckedRights;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.run.Right;
import dev.millrace.log.run.RoleRights;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicAdministration;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.replay.Alternative;
import dev.millrace.replay.AsRecorded;
import dev.millrace.replay.ReplayedStep;
import dev.millrace.replay.StepRange;
import dev.millrace.replay.TaskVerdict;
import dev.millrace.replay.WhatIf;
import dev.millrace.replay.archive.LiveRun;
import dev.millrace.replay.archive.RunExport;
import dev.millrace.runtime.Millrace;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.AccountRights;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.Preflight;
import dev.millrace.runtime.pipeline.PreflightCheck;
import dev.millrace.runtime.pipeline.PreflightCheck.Outcome;
import dev.millrace.runtime.pipeline.Role;
import dev.millrace.runtime.pipeline.SingleRole;
import dev.millrace.runtime.train.ConsumerLag;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.scorer.ScorerPurpose;
import dev.millrace.topology.MillraceTopology;
import dev.millrace.topology.RunOnBroker;
import dev.millrace.topology.Samples;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.TopologyRunner;
import dev.millrace.topology.batch.BatchConfig;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/**
 * The lists of {@link RoleRights} are enough and none too long: each role does its work under exactly its own, is refused what another does, and
 * without any one right it is refused with the command that grants it.
 */
@Timeout(1200)
class LeastRightsIT {
    private static final String PREFIX = "guarded.";
    private static final String READER = RoleRights.READER.lowerCase();

    private static final String ROLE = "role";
    private static final String STRANGER = "stranger";
    private static final String ONE = "one";
    private static final RunTopics NOT_YET = new RunTopics("millrace.not-yet.");
    private static final String SCHEMAS = TopicsConfig.defaults().schemasTopic();

    private static final String RUN = "least";
    private static final RunTopics TOPICS = new RunTopics("millrace." + RUN + ".");
    private static final Set<RoleRights> WRITES_VERSIONS =
            Set.of(RoleRights.LEARNER, RoleRights.ROLLBACK, RoleRights.REPAIR);
    private static final List<String> SETTINGS = List.of(
            "task={kind: sort, digits: 2}",
            "admission.batch_sequences=32",
            "topology.batch.sequences=32",
            "weights={keep_versions: 4, anchor_every: 1, checkpoint_every: 1}",
            "evaluation={every_versions: 2, prompts: 4, samples: 2}");

    @TempDir(cleanup = CleanupMode.NEVER) // the broker's, which outlives a test
    private static Path brokers;

    private static SecuredBroker broker;

    @TempDir
    Path directory;

    @BeforeAll
    static void open() throws Exception {
        List<String> users = new ArrayList<>(List.of(ROLE, STRANGER, ONE));
        for (RoleRights role : RoleRights.values()) {
            users.add(role.lowerCase());
        }
        broker = new SecuredBroker(brokers.resolve("broker"), users.toArray(String[]::new));
    }

    @AfterAll
    static void close() {
        broker.close();
    }

    private static void await(String what, Callable<Boolean> condition) throws Exception {
        long until = System.nanoTime() + TimeUnit.MINUTES.toNanos(10);
        while (!condition.call()) {
            assertThat(System.nanoTime()).as("waited ten minutes for " + what).isLessThan(until);
            TimeUnit.MILLISECONDS.sleep(100);
        }
    }

    private static TopologyConfig config() {
        TopologyConfig defaults = TopologyConfig.defaults();
        return new TopologyConfig(
                defaults.ingress(),
                defaults.join(),
                defaults.groups(),
                new BatchConfig(4, 0, BatchConfig.Order.COMPLETION, 0, false),
                defaults.runtime());
    }

    private static TopicsConfig onePartition() {
        return TopicsConfig.defaults().keptForEver().withPartitions(1);
    }

    private int stream() throws Exception {
        try (RunOnBroker run = new RunOnBroker(broker.client("admin"), PREFIX, onePartition())) {
            for (long version = 0; version <= 4; version++) {
                settled(run.send(
                        run.connection.topics().policyVersions(),
                        "policy/2/" + version,
                        Samples.version(version),
                        PolicyVersion.class));
            }
            TopologyRunner runner = new TopologyRunner(
                    config(),
                    Algorithm.defaults(),
                    run.connection,
                    directory.resolve("state"),
                    new SimpleMeterRegistry());
            CompletableFuture<Void> ended = CompletableFuture.runAsync(runner::run);
            for (int g = 0; g < 4; g++) {
                for (int i = 0; i < 2; i++) {
                    Rollout rollout = Samples.rollout("group-" + g, i)
                            .setOrdinal(g)
                            .setReward(i)
                            .build();
                    run.sendScored(rollout);
                }
            }
            await(
                    "both batches",
                    () -> run.read(run.connection.topics().batches()).size() == 2);
            runner.stop();
            ended.get(300, TimeUnit.SECONDS);
            return MillraceTopology.maxValueBytes(run.connection);
        }
    }

    private static List<AclBinding> acls(String user, List<Right> rights) {
        return rights.stream()
                .flatMap(right -> right.single().stream())
                .map(right -> new AclBinding(
                        new ResourcePattern(right.type(), right.names().get(0), right.pattern()),
                        new AccessControlEntry(
                                "User:" + user, "*", right.operations().get(0), AclPermissionType.ALLOW)))
                .toList();
    }

    private static void grant(String user, List<Right> rights) throws Exception {
        try (Admin admin = Admin.create(broker.client("admin"))) {
            admin.createAcls(acls(user, rights)).all().get();
        }
        await("what " + user + " was granted", () -> missing(user, rights).isEmpty());
    }

    private static void withdraw(String user, Right right) throws Exception {
        try (Admin admin = Admin.create(broker.client("admin"))) {
            admin.deleteAcls(acls(user, List.of(right)).stream()
                            .map(AclBinding::toFilter)
                            .toList())
                    .all()
                    .get();
        }
        await("what " + user + " lost", () -> missing(user, List.of(right)).equals(List.of(right)));
    }

    private static List<Right> missing(String user, List<Right> rights) {
        return tried(user, rights).missing();
    }

    private static CheckedRights tried(String user, List<Right> rights) {
        try (TopicAdministration administration =
                new TopicAdministration(broker.client(user), TopicsConfig.defaults())) {
            return administration.tried(TOPICS, rights);
        }
    }

    /** The same login with its password in a file. */
    private Map<String, Object> byReference(Map<String, Object> client) throws Exception {
        Path file = Files.writeString(directory.resolve("login.properties"), "password=" + READER + "\n");
        String name = "sasl.jaas.config";
        String login = String.valueOf(client.get(name));
        String referring = login.replace("password=\"" + READER + "\"", "password=\"${file:" + file + ":password}\"");
        assertThat(referring).isNotEqualTo(login);
        Map<String, Object> settings = new HashMap<>(client);
        settings.putAll(SecretSettings.forClients(Map.of(name, SecretText.ofSetting(name, referring)), "kafka."));
        assertThat(settings).containsEntry(name, referring);
        return settings;
    }

    @Test
    void shouldReplayAndExportWithNothingButReading() throws Exception {
        int maxValueBytes = stream();
        grant(READER, RoleRights.READER.of(new RunTopics(PREFIX), SCHEMAS));
        Map<String, Object> reader = byReference(broker.client(READER));
        assertThat(RunLog.look(reader, new RunTopics(PREFIX), TopicsConfig.defaults(), ""))
                .as("whose the topics are")
                .isPresent();
        try (RunLog log = RunLog.find(reader, new RunTopics(PREFIX), TopicsConfig.defaults(), "");
                LiveRun run = new LiveRun(log.connection(), Optional.empty())) {
            List<TaskVerdict> verdicts = new AsRecorded(run, config(), Algorithm.defaults(), maxValueBytes).replay(2);
            assertThat(verdicts).isNotEmpty().allMatch(TaskVerdict::isProved);
            List<ReplayedStep> steps = new ArrayList<>();
            new WhatIf(run, StepRange.ALL, List.of(new Alternative("recorded", Algorithm.defaults())))
                    .replay(2, steps::add);
            assertThat(steps).hasSize(2).allMatch(ReplayedStep::isAsRecorded);
            RunExport export = new RunExport(run);
            assertThat(export.to(directory.resolve("archive"), export.everythingBut(Set.of())))
                    .isPositive();
        }
        requireReadInPython(reader);
        Map<String, Object> writing = new HashMap<>(reader);
        writing.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, false);
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(writing, new ByteArraySerializer(), new ByteArraySerializer())) {
            assertThatThrownBy(() -> producer.send(new ProducerRecord<>(PREFIX + "batches", new byte[1]))
                            .get())
                    .isInstanceOf(ExecutionException.class)
                    .hasCauseInstanceOf(TopicAuthorizationException.class);
        }
    }

    private static ConfigLayers as(String user, ConfigLayers layers) {
        broker.client(user)
                .forEach((name, value) -> layers.set(
                        name.equals("bootstrap.servers") ? "run.bootstrap_servers" : "kafka." + name,
                        String.valueOf(value)));
        return layers;
    }

    private static Map<String, PreflightCheck> preflight(String user, String word) {
        ConfigLayers layers =
                as(user, new ConfigLayers().set("run.id", "not-yet").set("topics.timeout_ms=10000"));
        MillraceConfig config = layers.resolve();
        return new Preflight(config, () -> word, AccountRights.roles(config))
                .run().stream().collect(Collectors.toMap(PreflightCheck::subject, check -> check));
    }

    @Test
    void shouldPassThePreflightWithTheListsAndNotWithoutAnyOfThem() throws Exception {
        assertThat(preflight(STRANGER, "stranger").get("run").sentence())
                .as("not that there is none")
                .isEqualTo("cannot see whether there is a topic millrace.not-yet.run: the account lacks READ on topic"
                        + " millrace.not-yet.run; grant it: kafka-acls --bootstrap-server "
                        + broker.client(STRANGER).get("bootstrap.servers")
                        + " --add --allow-principal User:ACCOUNT --operation Read --topic millrace.not-yet.run");
        List<Right> rights = AccountRights.roles(MillraceConfig.defaults()).stream()
                .flatMap(role -> role.of(NOT_YET, SCHEMAS).stream())
                .toList();
        grant(ROLE, rights);
        Map<String, PreflightCheck> enough = preflight(ROLE, "enough");
        assertThat(enough.values())
                .filteredOn(check -> check.outcome() != Outcome.OK)
                .singleElement()
                .satisfies(check -> {
                    assertThat(check.subject()).isEqualTo("rights");
                    assertThat(check.outcome()).isEqualTo(Outcome.DOUBT);
                    assertThat(check.sentence())
                            .contains("are for topics that do not exist yet")
                            .contains("DELETE on topics millrace.not-yet.weights, millrace.not-yet.optimizer-state");
                });
        String own = RoleRights.ofPreflight(NOT_YET);
        Map<Right, String> failing = new LinkedHashMap<>();
        failing.put(Right.under(ResourceType.GROUP, own, AclOperation.READ), "transactions");
        failing.put(Right.under(ResourceType.TRANSACTIONAL_ID, own, AclOperation.WRITE), "transactions");
        failing.put(Right.under(ResourceType.TOPIC, own, AclOperation.WRITE), "transactions");
        failing.put(Right.under(ResourceType.TOPIC, NOT_YET.prefix(), AclOperation.CREATE), "topics");
        failing.put(Right.under(ResourceType.TOPIC, NOT_YET.prefix(), AclOperation.READ), "rights");
        failing.put(Right.on(ResourceType.TRANSACTIONAL_ID, SCHEMAS + ".writer", AclOperation.WRITE), "rights");
        try (Admin admin = Admin.create(broker.client("admin"))) {
            for (Map.Entry<Right, String> each : failing.entrySet()) {
                admin.deleteAcls(List.of(
                                acls(ROLE, List.of(each.getKey())).get(0).toFilter()))
                        .all()
                        .get();
                String word = "without-" + Math.abs(each.hashCode());
                await(
                        each.toString(),
                        () -> preflight(ROLE, word).get(each.getValue()).outcome() == Outcome.FAILED);
                admin.createAcls(acls(ROLE, List.of(each.getKey()))).all().get();
            }
        }
    }

    /** Options of the shared run; roles that do not create it get only its location. */
    private static SingleRole role(RoleRights role, boolean creates, StringWriter said, String... settings) {
        return new SingleRole(
                begun -> {
                    ConfigLayers layers = as(role.lowerCase(), new ConfigLayers().begunWith(begun))
                            .set("run.id", RUN);
                    for (String setting : settings) {
                        layers.set(setting);
                    }
                    return layers;
                },
                role,
                creates,
                false,
                new PrintWriter(said, true));
    }

    private CompletableFuture<Boolean> start(SingleRole role, Function<Pipeline, Role> made) {
        CompletableFuture<Boolean> ended = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                ended.complete(role.run(made));
            } catch (Throwable e) {
                ended.completeExceptionally(e);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return ended;
    }

    private Function<Pipeline, Role> work(RoleRights role) {
        return switch (role) {
            case ADMISSION -> Pipeline::admission;
            case GENERATOR -> Pipeline::generator;
            case GATEWAY -> pipeline -> pipeline.gateway(url -> gateways.add(url));
            case SCORER -> pipeline -> pipeline.scorer(ScorerPurpose.LEARNER);
            case REFERENCE -> pipeline -> pipeline.scorer(ScorerPurpose.REFERENCE);
            case TOPOLOGY -> pipeline -> pipeline.topology(directory.resolve("streams"));
            case LEARNER -> Pipeline::learner;
            case EVALUATOR -> Pipeline::evaluation;
            default -> throw new IllegalArgumentException(role + " is no role of its own");
        };
    }

    /** What no list but another's allows. */
    private static void another(RoleRights role) throws Exception {
        Map<String, Object> client = broker.client(role.lowerCase());
        try (Admin admin = Admin.create(client)) {
            switch (role) {
                case GENERATOR, TOPOLOGY ->
                    admin.fenceProducers(Set.of(TOPICS.prefix() + "learner"))
                            .all()
                            .get();
                case SCORER, IMPORT ->
                    admin.alterConsumerGroupOffsets(
                                    TOPICS.prefix() + "topology",
                                    Map.of(new TopicPartition(TOPICS.rollouts(), 0), new OffsetAndMetadata(0)))
                            .all()
                            .get();
                case GATEWAY ->
                    admin.createTopics(List.of(new NewTopic(TOPICS.prefix() + "own", 1, (short) 1)))
                            .all()
                            .get();
                case READER ->
                    admin.deleteRecords(
                                    Map.of(new TopicPartition(TOPICS.weights(), 0), RecordsToDelete.beforeOffset(1)))
                            .all()
                            .get();
                default -> write(client, WRITES_VERSIONS.contains(role) ? TOPICS.prompts() : TOPICS.policyVersions());
            }
        }
    }

    private static void write(Map<String, Object> client, String topic) throws Exception {
        Map<String, Object> writing = new HashMap<>(client);
        writing.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, false);
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(writing, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.send(new ProducerRecord<>(topic, new byte[1])).get();
        }
    }

    @Test
    void shouldTrainUnderOneAccount() throws Exception {
        ConfigLayers layers = as(
                ONE,
                new ConfigLayers()
                        .set("run.id", "whole")
                        .set("topics.schemas_topic=_own") // where nothing is registered yet
                        .set("topology.join.reference=true")
                        .set("scorer.reference.version=0")
                        .set("learner.max_steps=1"));
        SETTINGS.forEach(layers::set);
        MillraceConfig config = layers.resolve();
        Right lacking = Right.on(ResourceType.TRANSACTIONAL_ID, "_own.writer", AclOperation.WRITE);
        List<Right> rights = new ArrayList<>();
        AccountRights.of(config, AccountRights.roles(config)).forEach(right -> rights.addAll(right.single()));
        assertThat(rights.removeIf(lacking::equals)).isTrue();
        grant(ONE, rights);
        assertThatThrownBy(() ->
                        new Millrace(config).in(directory.resolve("refused")).run())
                .isInstanceOf(LogSetupException.class)
                .hasMessageContaining("lacks " + lacking + "; grant it: kafka-acls ");
        grant(ONE, List.of(lacking));
        assertThat(new Millrace(config)
                        .in(directory.resolve("granted"))
                        .run()
                        .summary()
                        .policyVersion())
                .isEqualTo(1);
        scoreAgainForReference(new RunTopics("millrace.whole."));
    }

    /** Scores what {@code train} has scored, under the list of that role. */
    private void scoreAgainForReference(RunTopics topics) throws Exception {
        RoleRights role = RoleRights.REFERENCE;
        grant(role.lowerCase(), role.of(topics, "_own"));
        try (Admin admin = Admin.create(broker.client("admin"))) {
            admin.alterConsumerGroupOffsets(
                            topics.prefix() + "reference",
                            Map.of(new TopicPartition(topics.rollouts(), 0), new OffsetAndMetadata(0)))
                    .all()
                    .get();
        }
        long before = end(topics.referenceScores());
        SingleRole single = new SingleRole(
                begun -> as(role.lowerCase(), new ConfigLayers().begunWith(begun))
                        .set("run.id", "whole")
                        .set("topics.schemas_topic=_own"),
                role,
                false,
                false,
                new PrintWriter(new StringWriter()));
        CompletableFuture<Boolean> running = start(single, work(role));
        await("reference scores", () -> {
            requireRunning(Map.of(single, running));
            return end(topics.referenceScores()) > before;
        });
        single.stop();
        assertThat(running.get(300, TimeUnit.SECONDS)).as("stopped").isFalse();
        assertThatThrownBy(() -> write(broker.client(role.lowerCase()), topics.scores()))
                .hasCauseInstanceOf(TopicAuthorizationException.class);
    }

    private final List<String> gateways = new CopyOnWriteArrayList<>();

    @Test
    void shouldRunEachRoleUnderExactlyItsListAndInAnyOrder() throws Exception {
        for (RoleRights role : RoleRights.values()) {
            grant(role.lowerCase(), role.of(TOPICS, SCHEMAS));
        }
        List<Right> deletes = List.of(
                Right.on(ResourceType.TOPIC, TOPICS.weights(), AclOperation.DELETE),
                Right.on(ResourceType.TOPIC, TOPICS.optimizerState(), AclOperation.DELETE));
        String learner = RoleRights.LEARNER.lowerCase();
        grant(learner, RoleRights.CREATOR.of(TOPICS, SCHEMAS));
        try (Admin admin = Admin.create(broker.client("admin"))) {
            admin.deleteAcls(acls(learner, deletes).stream()
                            .map(AclBinding::toFilter)
                            .toList())
                    .all()
                    .get();
        }
        Map<SingleRole, CompletableFuture<Boolean>> running = new LinkedHashMap<>();
        StringWriter ofAdmission = new StringWriter();
        SingleRole admission = role(RoleRights.ADMISSION, true, ofAdmission, SETTINGS.toArray(String[]::new));
        running.put(admission, start(admission, work(RoleRights.ADMISSION)));
        for (RoleRights role : List.of(RoleRights.GENERATOR, RoleRights.SCORER, RoleRights.EVALUATOR)) {
            SingleRole single = role(role, false, new StringWriter());
            running.put(single, start(single, work(role)));
        }
        await("admission waits", () -> ofAdmission.toString().contains("waiting for a role that may"));
        StringWriter said = new StringWriter();
        List<String> settings = new ArrayList<>(SETTINGS);
        settings.add("metrics.port=0");
        SingleRole last = role(RoleRights.LEARNER, true, said, settings.toArray(String[]::new));
        running.put(last, start(last, work(RoleRights.LEARNER)));
        Right changelogs = Right.under(ResourceType.TOPIC, TOPICS.prefix() + "topology", AclOperation.CREATE);
        withdraw(RoleRights.TOPOLOGY.lowerCase(), changelogs);
        await("the run is there", () -> said.toString().contains("learner of run"));
        refuse(RoleRights.TOPOLOGY, changelogs);
        grant(RoleRights.TOPOLOGY.lowerCase(), List.of(changelogs));
        SingleRole topology = role(RoleRights.TOPOLOGY, false, new StringWriter());
        running.put(topology, start(topology, work(RoleRights.TOPOLOGY)));

        await("the alarm of a learner that may not delete", () -> {
            requireRunning(running);
            return scraped(said).contains("name=\"versions-not-removed\"");
        });
        assertThat(scraped(said))
                .as("each client has a name, each lag one meter")
                .contains("kafka_consumer_fetch_manager_records_lag{")
                .doesNotContain("client_id=\"consumer-", "client_id=\"producer-", "client_id=\"adminclient-")
                .doesNotContain("topic=\"millrace_");
        assertThat(begin(TOPICS.weights())).isZero();
        grant(learner, deletes);
        await("old versions are removed and one is evaluated", () -> {
            requireRunning(running);
            return begin(TOPICS.weights()) > 0 && begin(TOPICS.optimizerState()) > 0 && end(TOPICS.evaluations()) > 0;
        });
        SingleRole gateway =
                role(RoleRights.GATEWAY, false, new StringWriter(), "generator.id=gateway", "gateway.port=0");
        running.put(gateway, start(gateway, work(RoleRights.GATEWAY)));
        await("the gateway opens a session", () -> {
            requireRunning(running);
            return !gateways.isEmpty() && opensSession(gateways.get(0));
        });
        assertThat(end(TOPICS.sessions())).isPositive();
        running.keySet().forEach(SingleRole::stop);
        for (CompletableFuture<Boolean> ended : running.values()) {
            assertThat(ended.get(300, TimeUnit.SECONDS)).as("stopped").isFalse();
        }
        read();
        for (RoleRights role : RoleRights.values()) {
            assertThatThrownBy(() -> another(role))
                    .as(role + " does what another does")
                    .isInstanceOf(ExecutionException.class)
                    .hasCauseInstanceOf(AuthorizationException.class);
        }
        refuseWithoutAny();
    }

    /** As the reader. */
    private static void read() throws Exception {
        try (RunLog log = RunLog.find(broker.client(READER), TOPICS, TopicsConfig.defaults(), "");
                Admin admin = Admin.create(broker.client(READER))) {
            assertThat(new LedgerReader(log.connection())
                            .read(Duration.ofMinutes(5))
                            .balance()
                            .addsUp())
                    .isTrue();
            assertThat(new ConsumerLag(admin, Map.of(log.connection().group("learner"), "learner")).read())
                    .containsKey("learner");
        }
    }

    private static void requireRunning(Map<SingleRole, CompletableFuture<Boolean>> roles) {
        roles.values().stream().filter(CompletableFuture::isDone).forEach(CompletableFuture::join);
    }

    private static String scraped(StringWriter said) throws Exception {
        Matcher address = Pattern.compile("http://\\S+/metrics").matcher(said.toString());
        return address.find()
                ? HttpClient.newHttpClient()
                        .send(
                                HttpRequest.newBuilder(URI.create(address.group()))
                                        .build(),
                                HttpResponse.BodyHandlers.ofString())
                        .body()
                : "";
    }

    private static boolean opensSession(String url) throws Exception {
        HttpResponse<String> answer = HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(URI.create(url + "/v1/sessions"))
                                .header("Content-Type", "application/json")
                                .POST(HttpRequest.BodyPublishers.ofString("{}"))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        return answer.statusCode() == 201;
    }

    private static long begin(String topic) throws Exception {
        return offset(topic, OffsetSpec.earliest());
    }

    private static long end(String topic) throws Exception {
        return offset(topic, OffsetSpec.latest());
    }

    /** Over all partitions. */
    private static long offset(String topic, OffsetSpec which) throws Exception {
        try (Admin admin = Admin.create(broker.client("admin"))) {
            Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
            admin.describeTopics(List.of(topic))
                    .allTopicNames()
                    .get()
                    .get(topic)
                    .partitions()
                    .forEach(partition -> asked.put(new TopicPartition(topic, partition.partition()), which));
            return admin.listOffsets(asked).all().get().values().stream()
                    .mapToLong(ListOffsetsResult.ListOffsetsResultInfo::offset)
                    .sum();
        }
    }

    /** Every right of every list is missed, and each kind of it is named when a role starts without it. */
    private void refuseWithoutAny() throws Exception {
        Map<RoleRights, Right> atStart = Map.of(
                RoleRights.GENERATOR, Right.on(ResourceType.TOPIC, TOPICS.serving(), AclOperation.WRITE),
                RoleRights.SCORER, Right.on(ResourceType.TOPIC, SCHEMAS, AclOperation.READ),
                RoleRights.EVALUATOR, Right.under(ResourceType.GROUP, TOPICS.prefix() + "evaluator", AclOperation.READ),
                RoleRights.LEARNER,
                        Right.under(ResourceType.TRANSACTIONAL_ID, TOPICS.prefix() + "learner", AclOperation.WRITE),
                RoleRights.ADMISSION, Right.under(ResourceType.TOPIC, TOPICS.prefix(), AclOperation.DESCRIBE_CONFIGS));
        Set<Right> untried = new LinkedHashSet<>();
        Set<RoleRights> refused = new LinkedHashSet<>();
        Set<Right> ofCommands = new LinkedHashSet<>();
        for (RoleRights role : RoleRights.values()) {
            Set<Right> singles = new LinkedHashSet<>();
            role.of(TOPICS, SCHEMAS).forEach(right -> singles.addAll(right.single()));
            if (role.compareTo(RoleRights.READER) > 0) { // the same right is tried in the same way
                singles.removeIf(right -> !ofCommands.add(right));
            }
            for (Right right : singles) {
                if (tried(role.lowerCase(), List.of(right)).granted().isEmpty()) {
                    untried.add(right);
                    continue;
                }
                withdraw(role.lowerCase(), right);
                if (right.equals(atStart.get(role))) {
                    refuse(role, right);
                    refused.add(role);
                }
                grant(role.lowerCase(), List.of(right));
            }
        }
        assertThat(refused).isEqualTo(atStart.keySet());
        assertThat(untried)
                .as("on topics that this run has not")
                .containsExactly(
                        Right.under(ResourceType.TOPIC, RoleRights.ofPreflight(TOPICS), AclOperation.WRITE),
                        Right.under(ResourceType.TOPIC, RoleRights.ofPreflight(TOPICS), AclOperation.DELETE),
                        Right.on(ResourceType.TOPIC, TOPICS.referenceScores(), AclOperation.WRITE),
                        Right.on(ResourceType.TOPIC, TOPICS.teacherScores(), AclOperation.WRITE),
                        Right.on(ResourceType.TOPIC, TOPICS.rewards(), AclOperation.WRITE));
    }

    private void refuse(RoleRights role, Right right) {
        SingleRole single = role(role, false, new StringWriter());
        assertThatThrownBy(() -> single.run(work(role)))
                .isInstanceOf(LogSetupException.class)
                .hasMessageStartingWith("the account of the " + role.lowerCase() + " lacks ")
                .hasMessageContaining(right.toString())
                .hasMessageContaining(
                        right.command(String.valueOf(broker.client("admin").get("bootstrap.servers")), Right.ANYBODY));
    }

    /** The package for Python, where Debian's python3-confluent-kafka and python3-numpy are, with the file that clients in Java read. */
    private void requireReadInPython(Map<String, Object> client) throws Exception {
        StringBuilder settings = new StringBuilder();
        for (String name : List.of("bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.jaas.config")) {
            settings.append(name).append('=').append(client.get(name)).append('\n');
        }
        Path file = Files.writeString(directory.resolve("client.properties"), settings);
        Path printed = directory.resolve("printed");
        String program = """
                import sys
                try:
                    import millrace_rl
                except ImportError as e:
                    sys.exit(print("absent:", e))
                run = millrace_rl.Run("", sys.argv[2], client=sys.argv[1], prefix=sys.argv[3])
                batches = list(run.batches())
                print(run.rollouts().rows, len(batches), sum(len(batch) for batch in batches), batches[0].padded().mask.sum() > 0)
                """;
        ProcessBuilder python = new ProcessBuilder(
                        "/usr/bin/python3", "-c", program, file.toString(), Samples.RUN.runId(), PREFIX)
                .redirectErrorStream(true)
                .redirectOutput(printed.toFile());
        python.environment().put("PYTHONPATH", "../clients/python");
        python.environment().put("PYTHONDONTWRITEBYTECODE", "1");
        try {
            assertThat(python.start().waitFor(300, TimeUnit.SECONDS)).isTrue();
        } catch (IOException e) {
            return; // no Python is installed here
        }
        String text = Files.readString(printed);
        if (!text.startsWith("absent: ")) {
            assertThat(text).startsWith("8 2 8 True\n").doesNotContain("Traceback");
        }
    }
}
