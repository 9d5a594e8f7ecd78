package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.log.Alarm;
import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.VersionKey;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Tests that foreign or out-of-order records on the learner's topics do not stop it. */
@Timeout(value = 600, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class StrayRecordsIT {
    /** Of {@code produce(12, 6)}: what is later is too stale to be trained on. */
    private static final int NEWEST = 9;

    @RegisterExtension
    private static final LearnerRuns RUNS = LearnerRuns.undisturbedOver(12);

    private SyntheticLog log;

    @BeforeEach
    void takeLog() {
        log = RUNS.log();
    }

    @Test
    void shouldPassOverCopiesOfBatchesAlsoAtTheNextStart() {
        log.produce(12, 6);
        LearnerBatch first = log.batches().get(0);
        RunningLearner.toVersion(log, 6);

        log.produce(first);
        log.produce(log.batches().get(5));
        log.produce(log.batches().get(11)); // a copy of one that is still to come
        RunningLearner.toVersion(log, 8);
        RunningLearner.whenConsumed(log, 12);

        assertThat(log.hashes()).isEqualTo(RUNS.undisturbed());
        assertThat(log.deadLetters()).isEmpty();
    }

    @Test
    void shouldSetABatchAsideThatIsFarAheadAndTrainOnNoneOfItsTrajectoriesTwice() {
        log.produce(12, 6);
        List<LearnerBatch> batches = log.batches();
        LearnerBatch far = SyntheticRollouts.batch(50, batches.get(1).getEntries());
        try (SyntheticLog again = new SyntheticLog(RUNS.bootstrapServers(), log.prefix() + "again.")) {
            log.copyTrajectoriesTo(again);
            again.produce(far);
            batches.forEach(again::produce);

            RunningLearner.whenConsumed(again, 12);

            assertThat(again.hashes()).isEqualTo(RUNS.undisturbed());
            assertThat(again.deadLetters())
                    .singleElement()
                    .satisfies(letter -> assertThat(header(letter, DeadLetterHeaders.SOURCE_OFFSET))
                            .isEqualTo("0"));
        }
    }

    @Test
    void shouldHaveABatchWaitForTheOneBeforeIt() {
        log.produce(12, 6);
        List<LearnerBatch> batches = log.batches();
        try (SyntheticLog again = new SyntheticLog(RUNS.bootstrapServers(), log.prefix() + "again.")) {
            log.copyTrajectoriesTo(again);
            again.produce(batches.get(0));
            again.produce(batches.get(2));
            again.produce(batches.get(3));
            again.produce(batches.get(1));
            RunningLearner.toVersion(again, 3);
            again.produce(batches.get(4));
            RunningLearner.toVersion(again, 5);

            assertThat(again.hashes()).isEqualTo(RUNS.undisturbed().subList(0, 6));
            assertThat(again.steps()).extracting(TrainingStep::getBatchId).containsExactly(0L, 1L, 2L, 3L, 4L);
            assertThat(again.deadLetters()).isEmpty();
        }
    }

    @Test
    void shouldWaitWithAnAlarmForABatchThatNeverComesUntilItIsSkipped() throws Exception {
        log.produce(12, 6);
        List<LearnerBatch> batches = log.batches();
        try (SyntheticLog again = new SyntheticLog(RUNS.bootstrapServers(), log.prefix() + "again.")) {
            log.copyTrajectoriesTo(again);
            again.produce(batches.get(0));
            again.produce(batches.get(2));
            try (RunningLearner learner = RunningLearner.start(again)) {
                Alarm alarm = learner.awaitAlarm("batch-lost");
                assertThat(alarm.sentence())
                        .matches("batch 1 is not on the log and has not come for \\d+ s; batches \\[2\\] wait for it");
                assertThat(alarm.remedy()).isEqualTo(again.connection().command("repair"));

                again.commitProgress(1, "batch=1 rollouts=6 version=1"); // what a repair does
                learner.awaitVersion(2);
                learner.awaitNoAlarm("batch-lost");
            }

            assertThat(again.versions()).extracting(PolicyVersion::getBatchId).containsExactly(-1L, 0L, 2L);
        }
    }

    @Test
    void shouldWaitAtABatchThatCannotBeTrainedOnUntilAnotherOfItsIdComes() throws Exception {
        log.produce(1, 4);
        Trajectory next = log.nextTrajectory();
        BatchEntry pointer = SyntheticRollouts.entry(next, 0, 7_000);
        log.produce(SyntheticRollouts.batch(1, List.of(pointer)));
        try (RunningLearner learner = RunningLearner.start(log)) {
            Alarm alarm = learner.awaitAlarm("batch-unusable");
            assertThat(alarm.sentence())
                    .startsWith("batch 1 references a trajectory at "
                            + log.connection().topics().trajectories() + "-0@7000");
            assertThat(alarm.remedy()).isEqualTo(log.connection().command("repair"));

            log.produce(SyntheticRollouts.batch(1, List.of(SyntheticRollouts.entry(next, 0, log.produce(next)))));
            learner.awaitVersion(2);
            learner.awaitNoAlarm("batch-unusable");
            learner.awaitOffset(3);
        }

        assertThat(log.deadLetters())
                .singleElement()
                .satisfies(letter -> assertThat(header(letter, DeadLetterHeaders.SOURCE_OFFSET))
                        .isEqualTo("1"));
    }

    @Test
    void shouldSendBatchesOfOtherRunsAndEpochsToTheDeadLettersWithAnAlarm() throws Exception {
        log.produce(2, 4);
        List<LearnerBatch> batches = log.batches();
        log.produce(with(batches.get(0), "run_id", "another"));
        log.produce(with(batches.get(1), "epoch", 7));
        log.produce(2, 4);
        try (RunningLearner learner = RunningLearner.start(log)) {
            Alarm alarm = learner.awaitAlarm("foreign-batch");
            assertThat(alarm.subject()).isEqualTo(log.connection().topics().batches() + "-0");
            learner.awaitVersion(4);
        }

        assertThat(log.deadLetters())
                .extracting(letter -> header(letter, DeadLetterHeaders.REASON))
                .containsExactly("wrong-run", "wrong-epoch");
    }

    @Test
    void shouldPassOverManifestsThatDoNotExtendTheChainAndDeadLetterEachOnce() throws Exception {
        log.produce(12, 6);
        RunningLearner.toVersion(log, 4);
        PolicyVersion newest = log.versions().get(4);
        byte[] garbage = "no manifest".getBytes(StandardCharsets.UTF_8);
        foreign(newest, 4); // the newest again, with other weights
        foreign(newest, 1_000_000);
        log.produceForeign(log.connection().topics().policyVersions(), key(3), garbage);
        try (RunningLearner learner = RunningLearner.start(log)) {
            Alarm alarm = learner.awaitAlarm("foreign-manifest");
            assertThat(alarm.subject()).isEqualTo(log.connection().topics().policyVersions());
            learner.awaitVersion(NEWEST);
        }
        RunningLearner.toVersion(log, NEWEST);

        assertThat(log.chain()).isEqualTo(RUNS.undisturbed());
        assertThat(log.deadLetters()).hasSize(3);
        assertThat(log.lastManifest(key(4)))
                .as("the key belongs to the chain's own again")
                .hasValue(RUNS.undisturbed().get(4));
        assertThat(log.lastManifest(key(3))).hasValue(RUNS.undisturbed().get(3));
        assertThat(log.lastManifest(key(1_000_000))).isEmpty();
    }

    @Test
    void shouldBeginAgainWhereSomebodyElsePublishedTheNextVersion() throws Exception {
        log.produce(1, 4);
        try (RunningLearner learner = RunningLearner.start(log)) {
            learner.awaitVersion(1);
            foreign(log.versions().get(1), 2);
            log.produce(1, 4);

            Alarm alarm = learner.awaitAlarm("version-lost");

            assertThat(alarm.sentence()).startsWith("training cannot continue from version 2, the newest: ");
            assertThat(alarm.remedy()).isEqualTo(log.connection().command("repair"));
        }
    }

    @Test
    void shouldNoticeAVersionOfSomebodyElseWithoutAnotherBatch() throws Exception {
        log.produce(1, 4);
        try (RunningLearner learner = RunningLearner.start(log)) {
            learner.awaitVersion(1);
            foreign(log.versions().get(1), 2);

            Alarm alarm = learner.awaitAlarm("version-lost");

            assertThat(alarm.sentence()).startsWith("training cannot continue from version 2, the newest: ");
            assertThat(alarm.remedy()).isEqualTo(log.connection().command("repair"));
        }
    }

    /** A manifest of this version whose weights do not exist. */
    private void foreign(PolicyVersion like, long version) {
        PolicyVersion forged = PolicyVersion.newBuilder(like)
                .setVersion(version)
                .setParentVersion(version - 1)
                .setWeights(TensorLocation.newBuilder(like.getWeights())
                        .setSha256("00".repeat(32))
                        .setBaseVersion(null)
                        .setBaseSha256(null)
                        .build())
                .build();
        log.produceForeign(log.connection().topics().policyVersions(), key(version), log.bytes(forged));
    }

    private byte[] key(long version) {
        return VersionKey.of(log.connection().run(), version).bytes();
    }

    private static LearnerBatch with(LearnerBatch batch, String field, Object value) {
        batch.put(batch.getSchema().getField(field).pos(), value);
        return batch;
    }

    private static String header(ConsumerRecord<byte[], byte[]> letter, String name) {
        return new String(letter.headers().lastHeader(name).value(), StandardCharsets.UTF_8);
    }
}
