package dev.millrace.runtime.rights;

import static dev.millrace.topology.RunOnBroker.await;
import static dev.millrace.topology.RunOnBroker.settled;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.log.SecretSettings;
import dev.millrace.log.SecretText;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.replay.Alternative;
import dev.millrace.replay.AsRecorded;
import dev.millrace.replay.ReplayedStep;
import dev.millrace.replay.StepRange;
import dev.millrace.replay.TaskVerdict;
import dev.millrace.replay.WhatIf;
import dev.millrace.replay.archive.LiveRun;
import dev.millrace.replay.archive.RunExport;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.pipeline.Preflight;
import dev.millrace.runtime.pipeline.PreflightCheck;
import dev.millrace.runtime.pipeline.PreflightCheck.Outcome;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.MillraceTopology;
import dev.millrace.topology.RunOnBroker;
import dev.millrace.topology.Samples;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.TopologyRunner;
import dev.millrace.topology.batch.BatchConfig;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/**
 * What the table of rights in docs/how-to/secured-cluster.md promises: a user who may read a run's topics and the schemas, and nothing else,
 * replays the run and exports it; a role that has what its rows say passes the preflight, and without any one of them it does not.
 */
class LeastRightsIT {
    private static final String PREFIX = "guarded.";
    private static final String READER = "reader";

    private static final String ROLE = "role";
    private static final String RUN = "millrace.not-yet.";

    @TempDir(cleanup = CleanupMode.NEVER) // the broker's, which outlives a test
    private static Path brokers;

    private static SecuredBroker broker;

    @TempDir
    Path directory;

    @BeforeAll
    static void open() throws Exception {
        broker = new SecuredBroker(brokers.resolve("broker"), READER, ROLE);
    }

    @AfterAll
    static void close() {
        broker.close();
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
            ended.get(90, TimeUnit.SECONDS);
            return MillraceTopology.maxValueBytes(run.connection);
        }
    }

    private static AclBinding mayRead(PatternType pattern, String topics) {
        return new AclBinding(
                new ResourcePattern(ResourceType.TOPIC, topics, pattern),
                new AccessControlEntry("User:" + READER, "*", AclOperation.READ, AclPermissionType.ALLOW));
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
        try (Admin admin = Admin.create(broker.client("admin"))) {
            admin.createAcls(List.of(
                            mayRead(PatternType.PREFIXED, PREFIX),
                            mayRead(PatternType.LITERAL, TopicsConfig.defaults().schemasTopic())))
                    .all()
                    .get();
        }
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

    private static AclBinding may(AclOperation operation, ResourceType kind, PatternType pattern, String name) {
        return new AclBinding(
                new ResourcePattern(kind, name, pattern),
                new AccessControlEntry("User:" + ROLE, "*", operation, AclPermissionType.ALLOW));
    }

    /** The rows of the table for one who starts first, is every role, and removes old weights. */
    private static List<AclBinding> table() {
        List<AclBinding> all = new ArrayList<>();
        String schemas = TopicsConfig.defaults().schemasTopic();
        for (AclOperation operation : List.of(
                AclOperation.CREATE,
                AclOperation.DESCRIBE,
                AclOperation.DESCRIBE_CONFIGS,
                AclOperation.READ,
                AclOperation.WRITE)) {
            all.add(may(operation, ResourceType.TOPIC, PatternType.PREFIXED, RUN));
            all.add(may(operation, ResourceType.TOPIC, PatternType.LITERAL, schemas));
        }
        all.add(may(AclOperation.READ, ResourceType.GROUP, PatternType.PREFIXED, RUN));
        all.add(may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, PatternType.PREFIXED, RUN));
        all.add(may(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, PatternType.PREFIXED, RUN));
        all.add(may(AclOperation.DELETE, ResourceType.TOPIC, PatternType.LITERAL, RUN + "weights"));
        return all;
    }

    private Map<String, PreflightCheck> preflight(String word) {
        ConfigLayers layers = new ConfigLayers().set("run.id", "not-yet").set("topics.timeout_ms=10000");
        broker.client(ROLE)
                .forEach((name, value) -> layers.set(
                        name.equals("bootstrap.servers") ? "run.bootstrap_servers" : "kafka." + name,
                        String.valueOf(value)));
        return new Preflight(layers.resolve(), () -> word)
                .run().stream().collect(Collectors.toMap(PreflightCheck::subject, check -> check));
    }

    @Test
    void shouldPassThePreflightWithWhatTheTableSaysAndNotWithoutAnyOfIt() throws Exception {
        new RunOnBroker(broker.client("admin"), "other.", onePartition()).close(); // makes the topic of schemas
        try (Admin admin = Admin.create(broker.client("admin"))) {
            admin.createAcls(table()).all().get();
            Map<String, PreflightCheck> enough = preflight("enough");
            assertThat(enough.values())
                    .filteredOn(check -> check.outcome() != Outcome.OK)
                    .singleElement()
                    .satisfies(check -> {
                        assertThat(check.subject()).isEqualTo("clean-up");
                        assertThat(check.outcome()).isEqualTo(Outcome.DOUBT);
                        assertThat(check.sentence())
                                .startsWith("left behind: the topic millrace.not-yet.preflight-enough, ")
                                .contains("; who may remove it enters: kafka-topics.sh --bootstrap-server "
                                        + broker.client(ROLE).get("bootstrap.servers")
                                        + " --delete --topic millrace.not-yet.preflight-enough. ")
                                .contains("needs DELETE on the topics of weights alone");
                    });
            Map<AclBinding, String> failing = new LinkedHashMap<>();
            failing.put(may(AclOperation.READ, ResourceType.GROUP, PatternType.PREFIXED, RUN), "transactions");
            failing.put(
                    may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, PatternType.PREFIXED, RUN), "transactions");
            failing.put(may(AclOperation.WRITE, ResourceType.TOPIC, PatternType.PREFIXED, RUN), "transactions");
            failing.put(may(AclOperation.READ, ResourceType.TOPIC, PatternType.PREFIXED, RUN), "transactions");
            failing.put(may(AclOperation.CREATE, ResourceType.TOPIC, PatternType.PREFIXED, RUN), "topics");
            failing.put(
                    may(
                            AclOperation.WRITE,
                            ResourceType.TOPIC,
                            PatternType.LITERAL,
                            TopicsConfig.defaults().schemasTopic()),
                    "schemas");
            for (Map.Entry<AclBinding, String> each : failing.entrySet()) {
                admin.deleteAcls(Set.of(each.getKey().toFilter())).all().get();
                Map<String, PreflightCheck> lacking = preflight("without-" + failing.size() + each.hashCode());
                assertThat(lacking.get(each.getValue()).outcome())
                        .as(each.getKey() + ": " + lacking)
                        .isEqualTo(Outcome.FAILED);
                admin.createAcls(Set.of(each.getKey())).all().get();
            }
        }
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
            assertThat(python.start().waitFor(120, TimeUnit.SECONDS)).isTrue();
        } catch (IOException e) {
            return; // no Python is installed here
        }
        String text = Files.readString(printed);
        if (!text.startsWith("absent: ")) {
            assertThat(text).startsWith("8 2 8 True\n").doesNotContain("Traceback");
        }
    }
}
