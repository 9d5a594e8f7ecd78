package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MappingIterator;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import dev.millrace.cli.Main;
import dev.millrace.cli.audit.RunInFolder;
import dev.millrace.cli.audit.RunInFolder.Said;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.registry.LogSchemaRegistry;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.TrainingStep;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.common.config.ConfigResource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/** Two runs that begin at the same time on one cluster that neither of them started. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ExternalClusterIT {
    private static final int STEPS = 3;
    private static final List<String> SMALL_BATCHES =
            List.of("--set", "admission.batch_sequences=32", "--set", "topology.batch.sequences=32");

    private record Trained(String id, String prefix, int status, List<String> err, JsonNode summary) {}

    @TempDir
    private static Path folder;

    private EmbeddedBroker cluster;
    private Trained first;
    private Trained second;

    @BeforeAll
    void trainTwo() throws Exception {
        cluster = EmbeddedBroker.start(folder.resolve("cluster"));
        try (TrainProcess one = train("one");
                TrainProcess two = train("two")) {
            first = trained(one, "one");
            second = trained(two, "two");
        }
    }

    private TrainProcess train(String directory) {
        List<String> arguments = new ArrayList<>(
                List.of("--bootstrap-servers", cluster.bootstrapServers(), "--max-steps", Integer.toString(STEPS)));
        arguments.addAll(SMALL_BATCHES);
        return TrainProcess.train(folder.resolve(directory), arguments.toArray(String[]::new));
    }

    /** The same in this process. */
    private Said trainHere(String directory, long steps, String... more) {
        List<String> arguments = new ArrayList<>(List.of(
                "train",
                "--plain",
                "--run-dir",
                folder.resolve(directory).toString(),
                "--max-steps",
                Long.toString(steps)));
        arguments.addAll(SMALL_BATCHES);
        arguments.addAll(List.of(more));
        return millrace(arguments.toArray(String[]::new));
    }

    /** The id that a run printed. */
    private static String id(Said said, String directory) {
        Matcher run = Pattern.compile("run (\\S+) in \\S*/" + directory + " ").matcher(said.words());
        assertThat(run.find()).as(said.toString()).isTrue();
        return run.group(1);
    }

    private Trained trained(TrainProcess process, String directory) throws Exception {
        String id = process.awaitLine("^run (\\S+) in " + directory + "$").group(1);
        Matcher log = process.awaitLine("^log on " + cluster.bootstrapServers() + ", topics (\\S+)\\*$");
        int status = process.awaitExit(TrainProcess.PATIENCE);
        return new Trained(
                id,
                log.group(1),
                status,
                process.err(),
                new ObjectMapper()
                        .readTree(folder.resolve(directory)
                                .resolve("summary.json")
                                .toFile()));
    }

    @AfterAll
    void stop() {
        cluster.close();
    }

    @Test
    void shouldGiveEachRunTopicsOfItsOwn() {
        assertThat(first.id).isNotEqualTo(second.id);
        for (Trained trained : List.of(first, second)) {
            assertThat(trained.prefix).isEqualTo("millrace." + trained.id + ".");
        }
    }

    @Test
    void shouldReadNothingOfTheOther() {
        for (Trained trained : List.of(first, second)) {
            assertThat(trained.status).as(String.join("\n", trained.err)).isZero();
            assertThat(trained.summary.path("steps").asInt()).isEqualTo(STEPS);
            assertThat(trained.summary.at("/rollouts/adds_up").asBoolean())
                    .as(trained.summary.toString())
                    .isTrue();
            assertThat(trained.summary.at("/rollouts/dead_lettered").asInt())
                    .as("a rollout of another run is dead-lettered")
                    .isZero();
            assertThat(folder.resolve(trained == first ? "one" : "two").resolve("broker"))
                    .doesNotExist();
            try (LoggedRun run = LoggedRun.on(cluster.bootstrapServers(), trained.id, trained.prefix)) {
                assertThat(run.records(run.topics().rollouts(), Rollout.class))
                        .isNotEmpty()
                        .extracting(Rollout::getRunId)
                        .containsOnly(trained.id);
                assertThat(run.records(run.topics().trainingLog(), TrainingStep.class))
                        .hasSize(STEPS)
                        .extracting(TrainingStep::getRunId)
                        .containsOnly(trained.id);
            }
        }
    }

    @Test
    void shouldListBothRuns() throws Exception {
        Said said = millrace("runs", "--json");
        assertThat(said.status()).as(said.toString()).isZero();
        JsonNode listed = said.json();
        assertThat(listed.findValuesAsText("run_id")).contains(first.id, second.id);
        for (JsonNode run : listed) {
            if (!Set.of(first.id, second.id).contains(run.path("run_id").asText())) {
                continue;
            }
            assertThat(run.path("newest_version").asInt()).as(run.toString()).isEqualTo(STEPS);
            assertThat(run.path("topics").asInt()).isGreaterThan(17);
            assertThat(run.path("bytes").asLong()).isPositive();
            assertThat(run.path("last_record_ms").asLong()).isPositive();
        }
        assertThat(millrace("runs", "--run", first.id).out()).contains(first.id).doesNotContain(second.id);
        StringWriter out = new StringWriter();
        int status =
                Main.commandLine().setOut(new PrintWriter(out)).execute("runs", "--runs", folder.toString(), "--json");
        assertThat(status).isZero();
        assertThat(new ObjectMapper().readTree(out.toString()).findValuesAsText("state"))
                .contains("finished", "finished");
    }

    @Test
    void shouldLeaveNothingOfADeletedRunButTransactionalIds() throws Exception {
        Held before = held();
        Said trained = trainHere("gone", STEPS);
        assertThat(trained.status()).as(trained.toString()).isZero();
        String gone = id(trained, "gone");
        String prefix = "millrace." + gone + ".";
        Said said = millrace("delete", "--run", gone, "--yes");
        assertThat(said.status()).as("as long as it may be alive").isEqualTo(1);
        assertThat(said.err()).contains("is alive: ", "its newest record is ");
        assertThat(held()).isNotEqualTo(before);
        Said tried = millrace("delete", "--run", gone);
        assertThat(tried.status()).as(tried.toString()).isZero();
        assertThat(tried.out())
                .contains("run " + gone + ", topics " + prefix + "*")
                .contains("\n  " + prefix + "policy-versions\n")
                .contains("\n  " + prefix + "learner.owner\n")
                .contains("\n  " + prefix + "rollouts-value\n")
                .contains("Nothing was deleted");
        long deadline = System.nanoTime() + TrainProcess.PATIENCE.toNanos();
        while (said.status() != 0 && System.nanoTime() < deadline) {
            LockSupport.parkNanos(1_000_000_000);
            said = millrace("delete", "--run", gone, "--yes");
        }
        assertThat(said.status()).as(said.toString()).isZero();
        assertThat(said.out())
                .contains("deleted 15 schema subjects", "7 days after its last use")
                .contains("\n  " + prefix + "learner\n")
                .doesNotContain("still there");
        assertThat(held()).isEqualTo(before);
        Said again = millrace("delete", "--run", gone, "--yes");
        assertThat(again.status()).isEqualTo(5);
        assertThat(again.err()).contains("no topic, group or subject of a run under the topic prefix '" + prefix + "'");
    }

    /** All that runs leave on the cluster, but for transactional ids. */
    private record Held(Set<String> topics, List<String> groups, List<String> settings, List<String> subjects) {}

    private Held held() throws Exception {
        Map<String, Object> client = Map.of("bootstrap.servers", cluster.bootstrapServers());
        try (Admin admin = Admin.create(client);
                LogSchemaRegistry schemas = LogSchemaRegistry.reading(client, "_schemas", 30_000)) {
            return new Held(
                    admin.listTopics().names().get(),
                    admin.listGroups().all().get().stream()
                            .map(group -> group.groupId())
                            .sorted()
                            .toList(),
                    admin
                            .listConfigResources(Set.of(ConfigResource.Type.GROUP), new ListConfigResourcesOptions())
                            .all()
                            .get()
                            .stream()
                            .map(ConfigResource::name)
                            .sorted()
                            .toList(),
                    schemas.contents().subjects());
        }
    }

    private Said millrace(String... arguments) {
        List<String> all = new ArrayList<>(List.of(arguments));
        all.addAll(List.of("--bootstrap-servers", cluster.bootstrapServers()));
        return RunInFolder.said(all);
    }

    private static Set<String> names(JsonNode topics, String prefix, String other) {
        return topics.findValuesAsText("topic").stream()
                .map(name -> name.replace(prefix, other))
                .collect(Collectors.toSet());
    }

    /** Strimzi's resources by topic. */
    private Map<String, JsonNode> kafkaTopics(String run) throws Exception {
        Said said = millrace("topics", "create", "--run", run, "--strimzi", "my-cluster");
        assertThat(said.status()).as(said.toString()).isZero();
        try (MappingIterator<JsonNode> each =
                new ObjectMapper(new YAMLFactory()).readerFor(JsonNode.class).readValues(said.out())) {
            return each.readAll().stream()
                    .collect(Collectors.toMap(
                            topic -> topic.at("/spec/topicName").asText(), topic -> topic));
        }
    }

    @Test
    void shouldCreateTheTopicsOfARunBeforeItsRoles() throws Exception {
        String prefix = "millrace.ready.";
        ObjectMapper json = new ObjectMapper();
        Said planned = millrace("topics", "create", "--run", "ready", "--dry-run", "--json");
        assertThat(planned.status()).as(planned.toString()).isZero();
        JsonNode plan = json.readTree(planned.out());
        assertThat(plan.path("existing").asInt()).as("_schemas").isEqualTo(1);
        assertThat(names(
                        json.readTree(millrace("topics", "list", "--run", first.id, "--json")
                                .out()),
                        prefix,
                        prefix))
                .as("what a run's own roles have created")
                .isEqualTo(names(plan, prefix, first.prefix))
                .contains(first.prefix + "topology-join-journal-changelog");
        assertThat(millrace("topics", "check", "--run", first.id).out())
                .isEqualTo("23 topics are as the run expects them.\n");
        assertThat(millrace("topics", "list", "--run", "ready").status()).isEqualTo(5);

        Map<String, JsonNode> kafkaTopics = kafkaTopics("ready");
        assertThat(kafkaTopics.keySet())
                .hasSize(23)
                .contains("_schemas", prefix + "topology-join-journal-changelog")
                .containsAll(names(plan, prefix, prefix));
        JsonNode rollouts = kafkaTopics.get(prefix + "rollouts");
        assertThat(rollouts.at("/metadata/labels/strimzi.io~1cluster").asText()).isEqualTo("my-cluster");
        assertThat(rollouts.at("/metadata/name").asText()).isEqualTo("millrace.ready.rollouts");
        assertThat(rollouts.at("/spec/partitions").asInt()).isEqualTo(4);
        assertThat(rollouts.at("/spec/replicas").isMissingNode())
                .as("the cluster's")
                .isTrue();
        assertThat(rollouts.at("/spec/config/retention.ms").asText()).isEqualTo("2592000000");
        assertThat(millrace("topics", "create", "--run", "ready", "--strimzi", "c", "--json")
                        .err())
                .contains("leave out --json, or --strimzi");

        assertThat(millrace("topics", "create", "--run", "ready").out())
                .contains("created " + prefix + "rollouts with 4 partitions, ")
                .endsWith("1 topics were there, 22 were created\n");
        assertThat(millrace("topics", "create", "--run", "ready").out())
                .isEqualTo("23 topics were there, 0 were created\n");
        assertThat(millrace("topics", "describe", "rollouts", "--run", "ready").out())
                .startsWith(prefix + "rollouts\n  4 partitions, 1 replicas, 1 in sync, 0 bytes\n")
                .contains("\n  retention.ms=2592000000\n");
        shouldNameWhatDiffers(prefix);
        Said trained = trainHere("ready", STEPS, "--set", "run.id=ready");
        assertThat(trained.status()).as(trained.toString()).isZero();
        assertThat(millrace("topics", "check", "--run", "ready").status())
                .as("nothing was made that was not there")
                .isZero();
        assertThat(names(
                        json.readTree(millrace("topics", "list", "--run", "ready", "--json")
                                .out()),
                        prefix,
                        prefix))
                .isEqualTo(names(plan, prefix, prefix));
    }

    private void shouldNameWhatDiffers(String prefix) throws Exception {
        ConfigResource rollouts = new ConfigResource(ConfigResource.Type.TOPIC, prefix + "rollouts");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", (Object) cluster.bootstrapServers()))) {
            alter(admin, rollouts, "60000");
            Said checked = millrace("topics", "check", "--run", "ready");
            assertThat(checked.status()).isEqualTo(4);
            assertThat(checked.out())
                    .isEqualTo("topic " + prefix + "rollouts has retention.ms=60000, expected at least 2592000000; "
                            + "kafka-configs --bootstrap-server " + cluster.bootstrapServers()
                            + " --alter --entity-type topics --entity-name " + prefix
                            + "rollouts --add-config retention.ms=2592000000\n");
            assertThat(new ObjectMapper()
                            .readTree(millrace("topics", "check", "--run", "ready", "--json")
                                    .out())
                            .at("/differences/0/setting")
                            .asText())
                    .isEqualTo("retention.ms");
            alter(admin, rollouts, "2592000000");
            assertThat(millrace("topics", "check", "--run", "ready").status()).isZero();
        }
    }

    private static void alter(Admin admin, ConfigResource topic, String retentionMs) throws Exception {
        admin.incrementalAlterConfigs(Map.of(
                        topic,
                        List.of(new AlterConfigOp(
                                new ConfigEntry("retention.ms", retentionMs), AlterConfigOp.OpType.SET))))
                .all()
                .get();
    }

    @Test
    void shouldRefuseASecondRunUnderTheTopicsOfTheFirst() {
        Said refused = trainHere("three", STEPS, "--set", "run.topic_prefix=" + first.prefix);
        assertThat(refused.status()).as(refused.toString()).isEqualTo(1);
        assertThat(refused.err().lines())
                .containsExactly("millrace: the topics under '" + first.prefix + "' belong to run " + first.id
                        + ", not to run " + id(refused, "three")
                        + "; continue that run, or choose another topic prefix");
    }

    @Test
    void shouldKeepTheLogOfARunWhereItIs() {
        String two = folder.resolve("two").toString();
        Said refused =
                RunInFolder.said(List.of("train", "--plain", "--run-dir", two, "--set", "run.bootstrap_servers="));
        assertThat(refused.status()).as(refused.toString()).isEqualTo(2);
        assertThat(refused.err().lines())
                .singleElement()
                .asString()
                .startsWith("millrace: run.bootstrap_servers is " + cluster.bootstrapServers() + " in " + two
                        + "/config.yaml and empty is requested; ");
    }

    @Test
    void shouldTryWhatARunNeedsAndLeaveNothing() throws Exception {
        Map<String, Object> client = Map.of("bootstrap.servers", cluster.bootstrapServers());
        try (Admin admin = Admin.create(client)) {
            Set<String> before = admin.listTopics().names().get();
            JsonNode tried = preflight(0, "--set", "run.id=not-yet");
            assertThat(tried.path("ready").asBoolean()).isTrue();
            assertThat(tried.findValuesAsText("subject"))
                    .containsSubsequence(
                            "cluster",
                            "topics",
                            "rights",
                            "transactions",
                            "record size",
                            "clock",
                            "reading",
                            "clean-up",
                            "run");
            assertThat(tried.findValuesAsText("outcome")).containsOnly("ok");
            assertThat(admin.listTopics().names().get()).isEqualTo(before);
        }
        // of a run that is there, it says what would be another one's
        JsonNode there = preflight(0, "--set", "run.id=" + first.id, "--set", "algorithm.objective=gspo");
        assertThat(there.toString()).contains(first.id + " is there under another configuration");
    }

    private JsonNode preflight(int status, String... more) throws Exception {
        List<String> arguments = new ArrayList<>(
                List.of("doctor", "preflight", "--json", "--bootstrap-servers", cluster.bootstrapServers()));
        arguments.addAll(List.of(more));
        StringWriter out = new StringWriter();
        int ended = Main.commandLine().setOut(new PrintWriter(out)).execute(arguments.toArray(String[]::new));
        assertThat(ended).as(out.toString()).isEqualTo(status);
        return new ObjectMapper().readTree(out.toString());
    }
}
