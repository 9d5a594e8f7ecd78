package dev.millrace.cli.audit;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.audit.RunInFolder.Said;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.EpochParent;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TrainingStep;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.io.TempDir;

/**
 * One run that is trained, taken back to a version, and trained on; by the commands as a user types them, in one story. The second
 * rollback is cut short between its two steps, by doing the first of them only.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class RollbackIT {
    @TempDir
    private static Path folder;

    private Path directory;
    private RunInFolder run;

    private static PolicyVersion version(List<PolicyVersion> versions, int epoch, long version) {
        return versions.stream()
                .filter(each -> each.getEpoch() == epoch && each.getVersion() == version)
                .findFirst()
                .orElseThrow();
    }

    @BeforeAll
    void train() {
        directory = folder.resolve("run");
        run = new RunInFolder(directory);
        run.train(4);
    }

    @Test
    @Order(1)
    void shouldBeginAnEpochWithTheVersionThatWasAskedFor() throws Exception {
        Said between = run.millrace("rollback", "--to-version", "3");
        assertThat(between.status()).isEqualTo(1);
        assertThat(between.err())
                .contains("version 3 was published without the optimiser's state")
                .contains("choose version 2 or version 4");

        Said said = run.millrace("rollback", "--to-version", "2", "--why", "to see what happens");
        assertThat(said.status()).as(said.toString()).isZero();
        assertThat(said.words())
                .contains("epoch 1 begins with version 2 of epoch 0, weights ")
                .contains("versions 3 to 4 of epoch 0 stay on the log")
                .contains("millrace train --run-dir " + directory + " continues from there");

        List<PolicyVersion> versions = run.versions();
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
        Said said = run.train(5);
        assertThat(said.words()).contains("epoch 1").contains("to version 5");

        run.look(log -> {
            assertThat(log.connection().run().epoch()).isEqualTo(1);
            assertThat(RunInFolder.raw(log, log.connection().topics().deadLetters()))
                    .isEmpty();
            List<TrainingStep> steps =
                    run.records(log, log.connection().topics().trainingLog(), TrainingStep.class);
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
        run.look(log -> {
            Said doctor = RunInFolder.millrace(log, "doctor", "--json");
            assertThat(doctor.json().path("epoch").asInt())
                    .as(doctor.toString())
                    .isEqualTo(1);
            assertThat(RunInFolder.millrace(log, "doctor").words()).contains(", epoch 1, topics millrace.*, 3 steps");
            Said older = RunInFolder.millrace(log, "doctor", "--set", "run.epoch=0");
            assertThat(older.status()).isEqualTo(2);
            assertThat(older.err())
                    .contains("run.epoch is 0, and run ")
                    .contains("is in epoch 1, the epoch that is read; leave run.epoch out");

            JsonNode ledger = RunInFolder.millrace(log, "ledger", "--json").json();
            assertThat(ledger.path("adds_up").asBoolean()).isTrue();
            assertThat(ledger.path("epochs").findValuesAsText("epoch")).containsExactly("0", "1");
            assertThat(ledger.at("/epochs/0/superseded").asInt()).isPositive();
            assertThat(ledger.at("/epochs/1/trained").asInt()
                            + ledger.at("/epochs/1/masked").size())
                    .isPositive();

            Path archive = folder.resolve("archive");
            Said exported = RunInFolder.millrace(log, "export", "--to", archive.toString());
            assertThat(exported.status()).as(exported.toString()).isZero();
            assertThat(exported.words()).contains(", epoch 1,");
            assertThat(new ObjectMapper()
                            .readTree(archive.resolve("index.json").toFile())
                            .path("epoch")
                            .asInt())
                    .isEqualTo(1);
            Said replayed = RunInFolder.millrace(log, "replay");
            assertThat(replayed.status()).as(replayed.toString()).isZero();
            assertThat(replayed.words()).contains(", epoch 1,");
        });
    }

    @Test
    @Order(5)
    void shouldCompleteARollbackThatWasCutShort() throws Exception {
        List<PolicyVersion> before = run.versions();
        String sha256 = version(before, 1, 4).getWeights().getSha256();
        run.look(log -> log.beginEpoch(
                new EpochParent(1, 4L, sha256, "cut short"), TopicsConfig.defaults(), Clock.systemUTC()));

        Said found = run.millrace("repair");
        assertThat(found.status()).as(found.toString()).isEqualTo(4);
        assertThat(found.words()).contains("epoch-unfinished: epoch 2 was started from version 4 of epoch 1");
        assertThat(found.out()).contains("millrace rollback --to-version 4 --run-dir " + directory);
        assertThat(run.millrace("repair", "--do", "skip-batch").err()).contains("offered: new-epoch");
        Said other = run.millrace("rollback", "--to-version", "3");
        assertThat(other.status()).isEqualTo(1);
        assertThat(other.err())
                .contains("epoch 2 was started from version 4 of epoch 1 and has no first version yet")
                .contains("--to-version 4");
        Said completed = run.millrace("rollback", "--to-version", "4");
        assertThat(completed.status()).as(completed.toString()).isZero();
        assertThat(completed.words()).contains("epoch 2 is completed: it begins with version 4 of epoch 1");
        assertThat(version(run.versions(), 2, 4).getWeights().getSha256()).isEqualTo(sha256);
        assertThat(Files.exists(directory.resolve("config.yaml"))).isTrue();
        assertThat(run.millrace("repair").status())
                .as("nothing is left to repair")
                .isZero();
    }
}
