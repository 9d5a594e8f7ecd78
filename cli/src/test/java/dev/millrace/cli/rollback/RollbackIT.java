package dev.millrace.cli.rollback;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.Main;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.log.topics.TopicsConfig;
import dev.millrace.schemas.EpochParent;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/**
 * One run that is trained, taken back to a version, and trained on; by the commands as a user types them, in one story. The second
 * rollback is cut short between its two steps, by doing the first of them only.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class RollbackIT {
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    @TempDir
    private static Path folder;

    private Path directory;

    private record Said(int status, String out, String err) {
        String words() {
            return out.replaceAll("\\s+", " ");
        }

        JsonNode json() throws Exception {
            return new ObjectMapper().readTree(out);
        }
    }

    private Said millrace(String... arguments) {
        List<String> all = new ArrayList<>(List.of(arguments));
        all.addAll(List.of("--run-dir", directory.toString()));
        return said(all);
    }

    /** Of a run whose broker is up. */
    private static Said millrace(RunLog log, String... arguments) {
        List<String> all = new ArrayList<>(List.of(arguments));
        all.addAll(List.of("--topic-prefix", log.connection().topics().prefix(), "--bootstrap-servers"));
        all.add(log.connection().clientProperties().get("bootstrap.servers").toString());
        return said(all);
    }

    private static Said said(List<String> all) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command = Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        int status = command.execute(all.toArray(String[]::new));
        return new Said(status, out.toString(), err.toString());
    }

    private Said train(int maxSteps) {
        Said said = millrace(
                "train",
                "--plain",
                "--max-steps",
                Integer.toString(maxSteps),
                "--set",
                "goal.mean_reward=0",
                "--set",
                "admission.batch_sequences=64",
                "--set",
                "topology.batch.sequences=64",
                "--set",
                "weights.anchor_every=4",
                "--set",
                "weights.checkpoint_every=2");
        assertThat(said.status).as(said.toString()).isZero();
        return said;
    }

    /** Every committed record of a topic, decoded. */
    private <T extends SpecificRecord> List<T> records(RunLog log, String topic, Class<T> type) {
        var deserializer = AvroSerde.of(type, log.connection().registry()).deserializer();
        return raw(log, topic).stream()
                .map(record -> deserializer.deserialize(topic, record.value()))
                .toList();
    }

    private static List<ConsumerRecord<byte[], byte[]>> raw(RunLog log, String topic) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (TopicScan scan = new TopicScan(log.connection(), PATIENCE)) {
            ConsistentCut cut = scan.cut(List.of(topic));
            scan.read(topic, cut, records::add);
        }
        return records;
    }

    private interface Look {
        void at(RunLog log) throws Exception;
    }

    private void look(Look look) throws Exception {
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory.resolve("broker"));
                RunLog log = RunLog.find(
                        Map.of("bootstrap.servers", broker.bootstrapServers()),
                        new RunTopics("millrace."),
                        TopicsConfig.defaults(),
                        "")) {
            look.at(log);
        }
    }

    private List<PolicyVersion> versions() throws Exception {
        List<PolicyVersion> versions = new ArrayList<>();
        look(log -> versions.addAll(records(log, log.connection().topics().policyVersions(), PolicyVersion.class)));
        return versions;
    }

    private static PolicyVersion version(List<PolicyVersion> versions, int epoch, long version) {
        return versions.stream()
                .filter(each -> each.getEpoch() == epoch && each.getVersion() == version)
                .findFirst()
                .orElseThrow();
    }

    @BeforeAll
    void train() {
        directory = folder.resolve("run");
        train(4);
    }

    @Test
    @Order(1)
    void shouldBeginAnEpochWithTheVersionThatWasAskedFor() throws Exception {
        Said between = millrace("rollback", "--to-version", "3");
        assertThat(between.status).isEqualTo(1);
        assertThat(between.err)
                .contains("version 3 was published without the optimiser's state")
                .contains("choose version 2 or version 4");

        Said said = millrace("rollback", "--to-version", "2", "--why", "to see what happens");
        assertThat(said.status).as(said.toString()).isZero();
        assertThat(said.words())
                .contains("epoch 1 begins with version 2 of epoch 0, weights ")
                .contains("versions 3 to 4 of epoch 0 stay on the log")
                .contains("millrace train --run-dir " + directory + " goes on from there");

        List<PolicyVersion> versions = versions();
        PolicyVersion before = version(versions, 0, 2);
        PolicyVersion first = version(versions, 1, 2);
        assertThat(first.getParentEpoch()).isZero();
        assertThat(first.getWeights().getSha256()).isEqualTo(before.getWeights().getSha256());
        assertThat(first.getWeights().getBaseVersion()).as("whole").isNull();
        assertThat(Objects.requireNonNull(first.getOptimizer()).getSha256())
                .isEqualTo(Objects.requireNonNull(before.getOptimizer()).getSha256());
        assertThat(first.getOptimizerSteps()).isEqualTo(before.getOptimizerSteps());
        assertThat(first.getBatchId()).isEqualTo(before.getBatchId());
        assertThat(first.getRolloutsConsumed()).isEqualTo(before.getRolloutsConsumed());
        assertThat(first.getControls()).isEqualTo(before.getControls());
    }

    @Test
    @Order(2)
    void shouldTrainOnFromThereAndRefuseNothingOfTheOldEpoch() throws Exception {
        Said said = train(5);
        assertThat(said.words()).contains("epoch 1").contains("to version 5");

        look(log -> {
            assertThat(log.connection().run().epoch()).isEqualTo(1);
            assertThat(raw(log, log.connection().topics().deadLetters())).isEmpty();
            List<TrainingStep> steps = records(log, log.connection().topics().trainingLog(), TrainingStep.class);
            assertThat(steps.stream().filter(step -> step.getEpoch() == 0).map(TrainingStep::getBatchId))
                    .containsExactly(0L, 1L, 2L, 3L);
            assertThat(steps.stream().filter(step -> step.getEpoch() == 1).map(TrainingStep::getBatchId))
                    .as("batches count on from the version's")
                    .containsExactly(2L, 3L, 4L);
        });
    }

    @Test
    @Order(3)
    void shouldSayWhichEpochIsReadAndReadNoOther() throws Exception {
        look(log -> {
            Said doctor = millrace(log, "doctor", "--json");
            assertThat(doctor.json().path("epoch").asInt())
                    .as(doctor.toString())
                    .isEqualTo(1);
            assertThat(millrace(log, "doctor").words()).contains(", epoch 1, topics millrace.*, 3 steps");
            Said older = millrace(log, "doctor", "--set", "run.epoch=0");
            assertThat(older.status).isEqualTo(2);
            assertThat(older.err)
                    .contains("run.epoch is 0, and run ")
                    .contains("is in epoch 1, which is the one that is read; leave run.epoch out");

            JsonNode ledger = millrace(log, "ledger", "--json").json();
            assertThat(ledger.path("adds_up").asBoolean()).isTrue();
            assertThat(ledger.path("epochs").findValuesAsText("epoch")).containsExactly("0", "1");
            assertThat(ledger.at("/epochs/0/superseded").asInt()).isPositive();
            assertThat(ledger.at("/epochs/1/trained").asInt()
                            + ledger.at("/epochs/1/masked").size())
                    .isPositive();

            Path archive = folder.resolve("archive");
            Said exported = millrace(log, "export", "--to", archive.toString());
            assertThat(exported.status).as(exported.toString()).isZero();
            assertThat(exported.words()).contains(", epoch 1,");
            assertThat(new ObjectMapper()
                            .readTree(archive.resolve("index.json").toFile())
                            .path("epoch")
                            .asInt())
                    .isEqualTo(1);
            Said replayed = millrace(log, "replay");
            assertThat(replayed.status).as(replayed.toString()).isZero();
            assertThat(replayed.words()).contains(", epoch 1,");
        });
    }

    @Test
    @Order(5)
    void shouldCompleteARollbackThatWasCutShort() throws Exception {
        List<PolicyVersion> before = versions();
        String sha256 = version(before, 1, 4).getWeights().getSha256();
        look(log -> log.beginEpoch(
                new EpochParent(1, 4L, sha256, "cut short"), TopicsConfig.defaults(), Clock.systemUTC()));

        Said found = millrace("repair");
        assertThat(found.status).as(found.toString()).isEqualTo(4);
        assertThat(found.words()).contains("epoch-unfinished: epoch 2 was begun from version 4 of epoch 1");
        assertThat(found.out).contains("millrace rollback --to-version 4 --run-dir " + directory);
        assertThat(millrace("repair", "--do", "skip-batch").err).contains("offered are: new-epoch");
        Said other = millrace("rollback", "--to-version", "3");
        assertThat(other.status).isEqualTo(1);
        assertThat(other.err)
                .contains("epoch 2 was begun from version 4 of epoch 1 and its first version is not there yet")
                .contains("--to-version 4");
        Said completed = millrace("rollback", "--to-version", "4");
        assertThat(completed.status).as(completed.toString()).isZero();
        assertThat(completed.words()).contains("epoch 2 is completed: it begins with version 4 of epoch 1");
        assertThat(version(versions(), 2, 4).getWeights().getSha256()).isEqualTo(sha256);
        assertThat(Files.exists(directory.resolve("config.yaml"))).isTrue();
        assertThat(millrace("repair").status).as("nothing is left to repair").isZero();
    }
}
