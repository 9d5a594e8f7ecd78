package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.learner.repair.Examined;
import dev.millrace.learner.repair.Inconsistency;
import dev.millrace.learner.repair.Repair;
import dev.millrace.learner.repair.RunExaminer;
import dev.millrace.learner.repair.Way;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.VersionKey;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Part of the log is lost; follows the printed ways out. */
@Timeout(value = 600, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class RepairIT {
    private static final Duration PATIENCE = Duration.ofSeconds(90);

    @TempDir
    private static Path directory;

    private static Examined examine(SyntheticLog log) {
        try (RunLog found = RunLog.find(
                log.connection().clientProperties(), log.connection().topics(), TopicsConfig.defaults(), "")) {
            return new RunExaminer(
                            log.connection(), found.claim(), TopicsConfig.defaults(), LearnerIT.weights(), PATIENCE)
                    .examine(Duration.ofSeconds(10));
        }
    }

    /** As retention does that is shorter than the way of a batch. */
    private static void loseTrajectories(SyntheticLog log) throws Exception {
        TopicPartition trajectories =
                new TopicPartition(log.connection().topics().trajectories(), 0);
        try (Admin admin = Admin.create(log.connection().admin())) {
            admin.deleteRecords(Map.of(trajectories, RecordsToDelete.beforeOffset(-1)))
                    .all()
                    .get();
        }
    }

    /** As retention does while the learner is away: of two batches that were assembled none is left. */
    private static void deleteBatchesUnread(SyntheticLog log, Repair repair) throws Exception {
        TopicPartition batches = new TopicPartition(log.connection().topics().batches(), 0);
        TopicPartition trajectories =
                new TopicPartition(log.connection().topics().trajectories(), 0);
        log.produce(2, 6);
        try (Admin admin = Admin.create(log.connection().admin())) {
            admin.deleteRecords(Map.of(batches, RecordsToDelete.beforeOffset(-1)))
                    .all()
                    .get();
            assertThat(examine(log).lostBatches())
                    .as("what the topology has not taken in may still become a batch")
                    .isEmpty();
            long end = log.offsets(trajectories.topic()).stream()
                            .mapToLong(Long::longValue)
                            .max()
                            .orElseThrow()
                    + 1;
            admin.alterConsumerGroupOffsets(
                            log.connection().group("topology"), Map.of(trajectories, new OffsetAndMetadata(end)))
                    .all()
                    .get();
        }
        Examined deleted = examine(log);
        assertThat(deleted.lostBatches()).as("as many as are certain").containsExactly(6L);
        assertThat(deleted.inconsistencies()).extracting(Inconsistency::name).containsExactly("batch-lost");
        assertThat(deleted.inconsistencies().get(0).sentence())
                .startsWith(
                        "batch 6 is due, and it was deleted unread: the learner has read lost.batches-0 up to offset ");
        assertThat(deleted.ways().map(Way::command))
                .containsExactly(
                        log.connection().command("repair --do skip-batch"),
                        log.connection().command("rollback --to-version 4"));
        try (RunningLearner learner = RunningLearner.start(log)) {
            assertThat(learner.awaitAlarm("records-removed").remedy())
                    .endsWith(log.connection().command("repair"));
            assertThat(repair.skipBatches(deleted)).as("rollouts of a batch").isEqualTo(6);

            log.produce(1, 6);
            learner.awaitAlarm("batch-lost");
            Examined next = examine(log);
            assertThat(next.lostBatches()).as("the other one shows now").containsExactly(7L);
            assertThat(repair.skipBatches(next)).isEqualTo(6);
            learner.awaitVersion(5); // by itself
            learner.awaitNoAlarm("batch-lost");
            learner.awaitNoAlarm("records-removed");
        }
        assertThat(log.steps())
                .extracting(TrainingStep::getBatchId)
                .containsExactly(0L, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L);
        assertThat(examine(log).inconsistencies()).isEmpty();
    }

    /** As a topology does whose place on the trajectories is lost: members of a batch that was trained on come in another one. */
    private static void repeatMembers(SyntheticLog log, Repair repair) {
        List<LearnerBatch> batches = log.batches();
        LearnerBatch trained = batches.get(batches.size() - 1);
        Trajectory fresh = log.nextTrajectory();
        List<BatchEntry> entries = new ArrayList<>(trained.getEntries().subList(0, 2));
        entries.add(SyntheticRollouts.entry(fresh, 0, log.produce(fresh)));
        log.produce(entries);

        Examined repeated = examine(log);
        assertThat(repeated.lostBatches()).containsExactly(9L);
        assertThat(repeated.inconsistencies()).extracting(Inconsistency::name).containsExactly("batch-unusable");
        assertThat(repeated.inconsistencies().get(0).sentence())
                .startsWith("batch 9 is due and cannot be trained on: it has rollout "
                        + entries.get(0).getRolloutId() + ", which batch 8 had");
        assertThat(repair.skipBatches(repeated))
                .as("what the other batch did not have")
                .isEqualTo(1);
        log.produce(1, 6);
        RunningLearner.toVersion(log, 6);
        assertThat(examine(log).inconsistencies()).isEmpty();
    }

    @Test
    void shouldTrainOnAfterGivingUpALostBatchAndMovingAnOffset() throws Exception {
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory);
                SyntheticLog log = new SyntheticLog(broker.bootstrapServers(), "lost.")) {
            Repair repair = new Repair(log.connection(), LearnerIT.weights(), PATIENCE, Clock.systemUTC());
            log.produce(2, 6);
            RunningLearner.toVersion(log, 2);
            assertThat(examine(log).inconsistencies())
                    .extracting(Inconsistency::name)
                    .containsExactly("offsets-lost");
            try (Admin admin = Admin.create(log.connection().admin())) { // as the topology whose trajectories these are
                TopicPartition rollouts =
                        new TopicPartition(log.connection().topics().rollouts(), 0);
                admin.alterConsumerGroupOffsets(
                                log.connection().group("topology"), Map.of(rollouts, new OffsetAndMetadata(0)))
                        .all()
                        .get();
            }
            assertThat(examine(log).inconsistencies()).isEmpty();

            LearnerBatch trained = log.batches().get(1);
            for (long id : List.of(
                    51L, 1_000_000_000_000L)) { // copies, which the learner refuses as soon as another one comes
                log.produce(LearnerBatch.newBuilder(trained).setBatchId(id).build());
            }
            Examined strays = examine(log);
            assertThat(strays.lostBatches()).as("nothing is given up for them").isEmpty();
            assertThat(strays.ways().map(Way::kind)).containsOnly(Way.Kind.WAIT);
            assertThat(strays.inconsistencies())
                    .extracting(Inconsistency::name)
                    .containsExactly("batch-stray", "batch-stray");
            assertThat(strays.inconsistencies().get(0).sentence())
                    .startsWith("batch 51 at offset ")
                    .endsWith(" of lost.batches is refused by the learner: batch 2 is due, and it has rollout "
                            + trained.getEntries().get(0).getRolloutId()
                            + ", which batch 1 had, so the log may have lost the topology's offsets");
            assertThat(strays.inconsistencies().get(1).sentence()).endsWith("it is more than 100000 batches ahead");

            log.loseNextBatch();
            log.produce(1, 6);
            Examined lost = examine(log);
            assertThat(lost.lostBatches()).containsExactly(2L);
            assertThat(lost.goodVersion()).hasValue(2);
            assertThat(lost.inconsistencies()).extracting(Inconsistency::name).containsExactly("batch-lost");
            assertThat(lost.inconsistencies().get(0).sentence())
                    .isEqualTo("batch 2 is due, and lost.batches does not have it; batch 3 waits for it");
            assertThat(lost.ways().map(Way::command))
                    .containsExactly(
                            log.connection().command("repair --do skip-batch"),
                            log.connection().command("rollback --to-version 2"));

            assertThat(repair.skipBatches(lost))
                    .as("rollouts that were joined and in no batch")
                    .isPositive();
            assertThat(examine(log).inconsistencies()).isEmpty();
            RunningLearner.toVersion(log, 3);
            assertThat(log.versions()).extracting(PolicyVersion::getBatchId).containsExactly(-1L, 0L, 1L, 3L);
            assertThat(log.steps()).extracting(TrainingStep::getBatchId).containsExactly(0L, 1L, 2L, 3L);

            log.produce(1, 6);
            loseTrajectories(log);
            Examined unusable = examine(log);
            assertThat(unusable.lostBatches()).containsExactly(4L);
            assertThat(unusable.inconsistencies())
                    .extracting(Inconsistency::name)
                    .containsExactly("batch-unusable");
            assertThat(unusable.inconsistencies().get(0).sentence())
                    .startsWith("batch 4 is due and cannot be trained on: it names offsets ")
                    .contains(" of lost.trajectories-0, which holds none");
            assertThat(unusable.ways().map(Way::command))
                    .containsExactly(
                            log.connection().command("repair --do skip-batch"),
                            log.connection().command("rollback --to-version 3"));
            assertThat(repair.skipBatches(unusable)).as("rollouts of the batch").isEqualTo(6);
            assertThat(examine(log).inconsistencies()).isEmpty();
            log.produce(1, 6);
            RunningLearner.toVersion(log, 4);
            assertThat(log.steps()).extracting(TrainingStep::getBatchId).containsExactly(0L, 1L, 2L, 3L, 4L, 5L);

            deleteBatchesUnread(log, repair);
            repeatMembers(log, repair);

            TopicPartition rollouts =
                    new TopicPartition(log.connection().topics().rollouts(), 0);
            String scorers = log.connection().group("scorer");
            try (Admin admin = Admin.create(log.connection().admin())) {
                admin.alterConsumerGroupOffsets(scorers, Map.of(rollouts, new OffsetAndMetadata(7_000)))
                        .all()
                        .get();
                Examined outside = examine(log);
                assertThat(outside.inconsistencies())
                        .extracting(Inconsistency::name)
                        .containsExactly("offset-outside");
                assertThat(repair.moveOffsets(outside)).isEqualTo(1);
                assertThat(Objects.requireNonNull(admin.listConsumerGroupOffsets(scorers)
                                        .partitionsToOffsetAndMetadata()
                                        .get()
                                        .get(rollouts))
                                .offset())
                        .isZero();
            }
            assertThat(examine(log).inconsistencies()).isEmpty();
        }
    }

    @Test
    void shouldNameAForeignManifestUntilItsKeyIsGivenBack(@TempDir Path own) throws Exception {
        try (EmbeddedBroker broker = EmbeddedBroker.start(own);
                SyntheticLog log = new SyntheticLog(broker.bootstrapServers(), "foreign.")) {
            log.produce(2, 6);
            RunningLearner.toVersion(log, 2);
            VersionKey key = VersionKey.of(log.connection().run(), 1_000_000);
            PolicyVersion forged = PolicyVersion.newBuilder(log.versions().get(2))
                    .setVersion(key.version())
                    .setParentVersion(key.version() - 1)
                    .build();
            log.produceForeign(log.connection().topics().policyVersions(), key.bytes(), log.bytes(forged));

            Examined foreign = examine(log);
            assertThat(foreign.goodVersion()).hasValue(2);
            assertThat(named(foreign)).singleElement().satisfies(found -> {
                assertThat(found.sentence())
                        .startsWith(
                                "foreign.policy-versions has 1 records that do not extend the run's chain of versions,"
                                        + " the last under the key of version 1000000 at offset ");
                assertThat(found.ways()).extracting(Way::kind).containsExactly(Way.Kind.WAIT);
            });

            log.produce(1, 6);
            RunningLearner.toVersion(log, 3);
            assertThat(log.lastManifest(key.bytes())).isEmpty();
            assertThat(named(examine(log))).isEmpty();
        }
    }

    @Test
    void shouldGoBackBeforeASuccessorWhoseWeightsAreAbsent(@TempDir Path own) throws Exception {
        try (EmbeddedBroker broker = EmbeddedBroker.start(own);
                SyntheticLog log = new SyntheticLog(broker.bootstrapServers(), "successor.")) {
            log.produce(2, 6);
            RunningLearner.toVersion(log, 2);
            PolicyVersion newest = log.versions().get(2);
            PolicyVersion forged = PolicyVersion.newBuilder(newest)
                    .setVersion(3)
                    .setParentVersion(2)
                    .setWeights(TensorLocation.newBuilder(newest.getWeights())
                            .setSha256("00".repeat(32))
                            .setBaseVersion(null)
                            .setBaseSha256(null)
                            .build())
                    .build();
            log.produceForeign(
                    log.connection().topics().policyVersions(),
                    VersionKey.of(log.connection().run(), 3).bytes(),
                    log.bytes(forged));

            Examined found = examine(log);

            assertThat(found.goodVersion()).hasValue(2);
            assertThat(found.inconsistencies())
                    .filteredOn(each -> each.name().equals("version-lost"))
                    .singleElement()
                    .satisfies(lost -> {
                        assertThat(lost.sentence()).startsWith("version 3, the newest, cannot be read: ");
                        assertThat(lost.ways())
                                .extracting(Way::kind, Way::command)
                                .containsExactly(tuple(
                                        Way.Kind.NEW_EPOCH, log.connection().command("rollback --to-version 2")));
                    });
        }
    }

    /** Ignores inconsistencies of a topology that never ran: its group has no offsets. */
    private static List<Inconsistency> named(Examined examined) {
        return examined.inconsistencies().stream()
                .filter(each -> each.name().equals("foreign-manifest"))
                .toList();
    }
}
