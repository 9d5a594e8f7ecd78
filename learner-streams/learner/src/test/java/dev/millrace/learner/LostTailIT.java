package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.log.Alarm;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.TrainingStep;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Tests that training continues from the topics that a power loss leaves. */
@Timeout(value = 600, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LostTailIT {
    @RegisterExtension
    private static final LearnerRuns RUNS = LearnerRuns.undisturbedOver(4);

    private SyntheticLog log;

    @BeforeEach
    void takeLog() {
        log = RUNS.log();
    }

    @Test
    void shouldMakeLostVersionsAgainOutOfTheirBatches() throws Exception {
        log.produce(4, 6);
        RunningLearner.toVersion(log, 3);
        long offsetOfVersion2 =
                log.offsets(log.connection().topics().policyVersions()).get(2);

        cut(log.connection().topics().policyVersions() + "-0", offsetOfVersion2);
        assertThat(log.hashes()).isEqualTo(RUNS.undisturbed().subList(0, 2));
        RunningLearner.toVersion(log, 4);

        assertThat(log.hashes()).isEqualTo(RUNS.undisturbed());
        assertThat(log.steps())
                .as("a step that is made again to the same weights is not written twice")
                .extracting(TrainingStep::getBatchId)
                .containsExactly(0L, 1L, 2L, 3L);
        assertThat(log.committedOffset()).isEqualTo(4);
    }

    @Test
    void shouldLearnVersionsAgainThatAreLostWhileItWaitsForABatch() throws Exception {
        log.produce(3, 6);
        try (RunningLearner learner = RunningLearner.startPatient(log)) {
            learner.awaitVersion(3);
            List<String> before = log.hashes();
            String versions = log.connection().topics().policyVersions();
            cut(versions + "-0", log.offsets(versions).get(2));
            learner.awaitVersion(3);

            assertThat(log.hashes()).isEqualTo(before);
        }
        assertThat(log.steps()).extracting(TrainingStep::getBatchId).containsExactly(0L, 1L, 2L);
    }

    @Test
    void shouldNotBeginOnceMoreWithTheInitialWeightsWhereAllVersionsAreLost() throws Exception {
        log.produce(2, 6);
        RunningLearner.toVersion(log, 2);

        cut(log.connection().topics().policyVersions() + "-0", 0);
        try (RunningLearner learner = RunningLearner.start(log)) {
            Alarm alarm = learner.awaitAlarm("chain-lost");

            assertThat(alarm.sentence())
                    .isEqualTo(log.connection().topics().policyVersions()
                            + " has no version of this epoch, but "
                            + log.connection().topics().trainingLog()
                            + " says that batch 1 made version 2: the versions were lost or deleted");
            assertThat(alarm.remedy()).isEqualTo(log.connection().command("repair"));
        }
        assertThat(log.versions()).isEmpty();
    }

    @Test
    void shouldGoOnWithoutTheCommittedOffset() throws Exception {
        log.produce(2, 6);
        log.produce(List.of());
        log.produce(List.of());
        log.produce(1, 6);
        RunningLearner.whenConsumed(log, 4);
        assertThat(log.committedOffset()).isEqualTo(4);

        RUNS.whileStopped(directory -> {
            for (int partition = 0; partition < 4; partition++) {
                CutLog.everything(directory, "__consumer_offsets-" + partition);
            }
        });
        assertThat(log.committedOffset()).isEqualTo(-1);
        RunningLearner.toVersion(log, 3);

        assertThat(log.hashes()).hasSize(4).doesNotHaveDuplicates();
        assertThat(log.steps()).extracting(TrainingStep::getBatchId).containsExactly(0L, 1L, 2L, 3L, 4L);
        assertThat(log.steps()).extracting(TrainingStep::getRolloutsConsumed).containsExactly(6L, 12L, 12L, 12L, 18L);
        assertThat(log.committedOffset()).isEqualTo(5);
    }

    @Test
    void shouldWaitForLostBatchesUntilTheyComeAgain() throws Exception {
        log.produce(4, 6);
        RunningLearner.toVersion(log, 3);
        List<LearnerBatch> batches = log.batches();

        cut(log.connection().topics().batches() + "-0", 1);
        try (RunningLearner learner = RunningLearner.start(log)) {
            Alarm alarm = learner.awaitAlarm("log-tail-lost");
            assertThat(alarm.sentence())
                    .isEqualTo(log.connection().topics().batches() + "-0 ends at offset 1, but was read up to offset 3:"
                            + " its last 2 offsets are lost; batch 3 is due");
            assertThat(alarm.remedy()).endsWith(log.connection().command("repair"));

            batches.subList(1, 4).forEach(log::produce);
            learner.awaitVersion(4);
            learner.awaitNoAlarm("log-tail-lost");
        }

        assertThat(log.hashes()).isEqualTo(RUNS.undisturbed());
        assertThat(log.steps()).extracting(TrainingStep::getBatchId).containsExactly(0L, 1L, 2L, 3L);
        assertThat(log.deadLetters()).isEmpty();
    }

    @Test
    void shouldSayWhichStepsAreLostAndTrainOn() throws Exception {
        log.produce(3, 6);
        RunningLearner.toVersion(log, 3);
        String steps = log.connection().topics().trainingLog();

        cut(steps + "-0", log.offsets(steps).get(1));
        try (RunningLearner learner = RunningLearner.start(log)) {
            Alarm alarm = learner.awaitAlarm("log-tail-lost");
            assertThat(alarm.subject()).isEqualTo(steps + "-0");
            assertThat(alarm.sentence())
                    .startsWith("batch 2 was consumed, and its last step is on batch 0: the end of the topic"
                            + " is lost; training continues;");
            assertThat(alarm.remedy()).isEqualTo(log.connection().command("repair"));

            log.produce(1, 6);
            learner.awaitVersion(4);
            learner.awaitNoAlarm("log-tail-lost");
        }
        assertThat(log.hashes()).hasSize(5).doesNotHaveDuplicates();
        assertThat(log.steps()).extracting(TrainingStep::getBatchId).containsExactly(0L, 3L);
    }

    @Test
    void shouldSayWhichBatchIsMissingWhereBothItAndItsVersionAreLost() throws Exception {
        log.produce(3, 6);
        RunningLearner.toVersion(log, 3);
        List<LearnerBatch> batches = log.batches();
        long offsetOfVersion2 =
                log.offsets(log.connection().topics().policyVersions()).get(2);

        RUNS.whileStopped(directory -> {
            CutLog.from(directory, log.connection().topics().policyVersions() + "-0", offsetOfVersion2);
            CutLog.from(directory, log.connection().topics().batches() + "-0", 1);
        });
        try (RunningLearner learner = RunningLearner.start(log)) {
            Alarm alarm = learner.awaitAlarm("batch-lost");
            assertThat(alarm.sentence()).startsWith("batch 1 is not on the log and has not come for ");
            assertThat(alarm.sentence()).endsWith("; its version was lost and must be retrained");
            assertThat(alarm.remedy()).isEqualTo(log.connection().command("repair"));

            batches.subList(1, 3).forEach(log::produce);
            learner.awaitVersion(3);
            learner.awaitNoAlarm("batch-lost");
        }

        assertThat(log.hashes()).isEqualTo(RUNS.undisturbed().subList(0, 4));
    }

    private static void cut(String partition, long offset) throws IOException {
        RUNS.whileStopped(directory -> CutLog.from(directory, partition, offset));
    }
}
