package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.audit.RunInFolder;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.run.ClaimedRun;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.run.RunTopics;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.io.TempDir;

/**
 * A run whose client settings hold secrets, literally and by reference, and whose configuration is not the default one: nothing of
 * the former is left anywhere, and all of the latter is found by those who know the run's name and the cluster.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class RecordedRunIT {
    private static final int STEPS = 3;
    /** In every secret of this test, and nowhere else. */
    private static final String SECRET = "hunter2";

    private static final Map<String, String> ENVIRONMENT =
            Map.of("MILLRACE_TEST_SECRET", SECRET + "-of-the-environment");

    @TempDir
    private static Path folder;

    private EmbeddedBroker cluster;
    private Path told;
    private Path elsewhere;
    /** What every command printed. */
    private final List<String> printed = new ArrayList<>();

    private record Ended(int status, List<String> out, List<String> err) {}

    @BeforeAll
    void train() throws Exception {
        cluster = EmbeddedBroker.start(folder.resolve("cluster"));
        told = Files.createDirectories(folder.resolve("told"));
        elsewhere = Files.createDirectories(folder.resolve("elsewhere"));
        Files.writeString(told.resolve("secrets.properties"), "key-store=" + SECRET + "-of-a-file\n");
        Files.writeString(told.resolve("my.yaml"), """
                run: {id: recorded}
                task: {kind: sort, digits: 3}
                admission: {batch_sequences: 32, eta: 1}
                topology: {batch: {sequences: 32}}
                goal: {mean_reward: 0}
                generator: {slots: 64}
                kafka:
                  ssl.truststore.password: hunter2-literally
                  ssl.key.password: ${env:MILLRACE_TEST_SECRET}
                  ssl.keystore.password: ${file:secrets.properties:key-store}
                  sasl.jaas.config: >-
                    org.apache.kafka.common.security.plain.PlainLoginModule required
                    username="bob" password="hunter2-in-a-line";
                  plugin.basic.auth.user.info: bob:hunter2-of-a-plug-in
                """);
        Ended trained =
                run(told, "train", "--verbose", "--config", "my.yaml", "--run-dir", "run", "--max-steps", "" + STEPS);
        assertThat(trained.status).as(String.join("\n", trained.err)).isZero();
    }

    @AfterAll
    void stop() {
        cluster.close();
    }

    /** Runs {@code millrace} on the cluster to its end, in a process that has the environment's secret. */
    private Ended run(Path workingDirectory, String command, String... arguments) throws Exception {
        List<String> all = line(command, arguments);
        try (TrainProcess process = TrainProcess.start(workingDirectory, all, ENVIRONMENT)) {
            int status = process.awaitExit(TrainProcess.PATIENCE);
            printed.addAll(process.out());
            printed.addAll(process.err());
            return new Ended(status, process.out(), process.err());
        }
    }

    private List<String> line(String command, String... arguments) {
        List<String> all = new ArrayList<>(List.of(command));
        all.addAll(Arrays.asList(arguments));
        if (!command.equals("config")) {
            all.addAll(List.of("--bootstrap-servers", cluster.bootstrapServers()));
        }
        return all;
    }

    /** The same in this process, which knows no secret. */
    private Ended here(String command, String... arguments) {
        RunInFolder.Said said = RunInFolder.said(line(command, arguments));
        Ended ended = new Ended(
                said.status(), said.out().lines().toList(), said.err().lines().toList());
        printed.addAll(ended.out);
        printed.addAll(ended.err);
        return ended;
    }

    private String recorded() {
        return RunLog.look(
                        Map.of("bootstrap.servers", cluster.bootstrapServers()),
                        new RunTopics("millrace.recorded."),
                        TopicsConfig.defaults(),
                        "")
                .flatMap(ClaimedRun::configuration)
                .orElseThrow();
    }

    @Test
    @Order(1)
    void shouldRecordWhatTheRunIsOnItsLog() {
        assertThat(recorded())
                .contains("kind: sort", "batch_sequences: 32", "topic_prefix: millrace.recorded.", "slots: 64")
                .doesNotContain("kafka:", "bootstrap_servers", "device", SECRET, "MILLRACE_TEST_SECRET");
    }

    @Test
    @Order(2)
    void shouldKeepReferencesAndHideLiteralsInTheRunsFolder() throws Exception {
        assertThat(Files.readString(told.resolve("run/config.yaml")))
                .contains("ssl.truststore.password: \"[hidden]\"")
                .contains("${env:MILLRACE_TEST_SECRET}", "${file:secrets.properties:key-store}")
                .contains("username=\\\"bob\\\" password=\\\"[hidden]\\\"", "bob:[hidden]");
    }

    @Test
    @Order(3)
    void shouldSayThatASecretMustBeGivenAgain() throws Exception {
        Ended refused = run(told, "train", "--run-dir", "run", "--max-steps", "" + (STEPS + 1));
        assertThat(refused.status).isEqualTo(2);
        assertThat(refused.err)
                .singleElement()
                .asString()
                .startsWith("millrace: kafka.")
                .contains("a recorded configuration keeps no literal secret; give it again");
        Ended resumed = run(told, "train", "--run-dir", "run", "--config", "my.yaml", "--max-steps", "" + (STEPS + 1));
        assertThat(resumed.status).as(String.join("\n", resumed.err)).isZero();
    }

    @Test
    @Order(4)
    void shouldNameAVariableThatIsNotThere() {
        Ended refused =
                here("ledger", "--run", "recorded", "--set", "kafka.ssl.key.password=${env:MILLRACE_TEST_NONE}");
        assertThat(refused.status).isEqualTo(2);
        assertThat(refused.err)
                .containsExactly("millrace: kafka.ssl.key.password refers to ${env:MILLRACE_TEST_NONE}, and there is no"
                        + " environment variable MILLRACE_TEST_NONE; set it before the start");
    }

    @Test
    @Order(5)
    void shouldBeAskedAndReplayedByWhoeverKnowsItsName() throws Exception {
        assertThat(here("ledger", "--run", "recorded").status).isZero();
        Ended replayed = here("replay", "--run", "recorded");
        assertThat(replayed.status)
                .as("by settings that are not the defaults: %s", String.join("\n", replayed.out))
                .isZero();
        String archive = elsewhere.resolve("archive").toString();
        Ended exported = here("export", "--run", "recorded", "--to", archive);
        assertThat(exported.status).as(String.join("\n", exported.err)).isZero();
        assertThat(Files.readString(elsewhere.resolve("archive/index.json"))).contains("batch_sequences: 32");
    }

    @Test
    @Order(6)
    void shouldGoOnFromAnotherMachine() throws Exception {
        Ended resumed = here(
                "train",
                "--plain",
                "--set",
                "run.id=recorded",
                "--run-dir",
                elsewhere.resolve("other").toString(),
                "--max-steps",
                "" + (STEPS + 2));
        assertThat(resumed.status).as(String.join("\n", resumed.err)).isZero();
        assertThat(Files.readString(elsewhere.resolve("other/config.yaml")))
                .contains("kind: sort", "batch_sequences: 32");
        assertThat(Files.readAllLines(elsewhere.resolve("other/steps.csv")))
                .as("a head and a line for each step")
                .hasSize(1 + STEPS + 2);
    }

    @Test
    @Order(7)
    void shouldRefuseARoleThatContradicts() {
        Ended refused = here("score", "--set", "run.id=recorded", "--set", "admission.eta=2");
        assertThat(refused.status).isEqualTo(2);
        assertThat(refused.err)
                .containsExactly(
                        "millrace: admission.eta is 1 in the configuration of run recorded on its log and 2 is requested;"
                                + " all roles of a run share one configuration, so leave the key out, or stop the roles and"
                                + " start one with --reconfigure, which the others then follow");
    }

    @Test
    @Order(8)
    void shouldLetARoleTakePartThatIsToldNothingOfTheRun() throws Exception {
        try (TrainProcess scorer = TrainProcess.start(
                elsewhere,
                List.of(
                        "score",
                        "--set",
                        "run.id=recorded",
                        "--set",
                        "scorer.id=second",
                        "--bootstrap-servers",
                        cluster.bootstrapServers()))) {
            scorer.awaitLine("^scorer  version \\d+");
            scorer.signal("INT");
            assertThat(scorer.awaitExit(TrainProcess.PATIENCE))
                    .as(scorer::toString)
                    .isEqualTo(130);
        }
    }

    @Test
    @Order(9)
    void shouldChangeWhatIsRecordedWhenTheRunGoesOnUnderAnother() {
        Ended resumed = here(
                "train",
                "--plain",
                "--run-dir",
                elsewhere.resolve("other").toString(),
                "--set",
                "admission.eta=2",
                "--max-steps",
                "" + (STEPS + 3));
        assertThat(resumed.status).as(String.join("\n", resumed.err)).isZero();
        assertThat(resumed.out).contains("admission.eta was 1 and is 2 from here on");
        assertThat(recorded()).contains("eta: 2");
    }

    @Test
    @Order(10)
    void shouldLeaveNoSecretAnywhere() throws Exception {
        run(told, "config", "--config", "my.yaml");
        run(told, "config", "--verbose", "--config", "my.yaml", "--set", "kafka=hunter2");
        run(told, "config", "--verbose", "--set", "kafka.ssl.key.password='hunter2");
        run(
                told,
                "train",
                "--verbose",
                "--set",
                "run.schema_registry_url=http://bob:hunter2 @registry",
                "--run-dir",
                "registry");
        assertThat(printed).hasSizeGreaterThan(50).noneMatch(line -> line.contains(SECRET));
        for (Path left : List.of(told.resolve("run"), told.resolve("registry"), elsewhere, folder.resolve("cluster"))) {
            assertNoSecretIn(left);
        }
        try (LoggedRun log = LoggedRun.on(cluster.bootstrapServers(), "recorded", "millrace.recorded.")) {
            for (String topic : log.topics().required()) {
                for (ConsumerRecord<byte[], byte[]> record : log.records(topic)) {
                    assertNoSecretIn(topic, record.key());
                    assertNoSecretIn(topic, record.value());
                    for (Header header : record.headers()) {
                        assertNoSecretIn(topic, header.value());
                    }
                }
            }
        }
    }

    private static void assertNoSecretIn(Path tree) throws IOException {
        if (!Files.exists(tree)) {
            return;
        }
        try (Stream<Path> files = Files.walk(tree)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                assertNoSecretIn(file.toString(), Files.readAllBytes(file));
            }
        }
    }

    private static void assertNoSecretIn(String where, byte[] bytes) {
        assertThat(bytes == null ? "" : new String(bytes, StandardCharsets.ISO_8859_1))
                .as(where)
                .doesNotContain(SECRET);
    }
}
