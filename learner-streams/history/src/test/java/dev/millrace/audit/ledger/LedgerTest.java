package dev.millrace.audit.ledger;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.audit.ledger.Balance.OldestPending;
import dev.millrace.audit.ledger.Ledger.RecordDigest;
import dev.millrace.audit.ledger.Ledger.RolloutPlace;
import dev.millrace.audit.ledger.LedgerReader.StrayOutcomes;
import dev.millrace.audit.ledger.LedgerReader.TrainedBatches;
import dev.millrace.audit.ledger.LedgerReader.TrainedBatches.StepWords;
import dev.millrace.log.scan.OffsetRange;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.TrainingStep;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class LedgerTest {
    private static final RolloutOrigin FIRST = new RolloutOrigin(0, 3);
    private static final RolloutOrigin SECOND = new RolloutOrigin(0, 4);

    private final Ledger ledger = new Ledger(Map.of(0, new OffsetRange(0, 100), 1, new OffsetRange(50, 200_000)), 0);

    private void rollouts(int partition, long from, long to, RolloutOrigin origin) {
        for (long offset = from; offset < to; offset++) {
            ledger.rollout(partition, offset, origin, "g-" + partition + "/" + offset, 1000 + offset);
        }
    }

    private Balance balance() {
        return ledger.balance(Map.of(), List.of());
    }

    @Test
    void shouldFindEachRolloutInExactlyOnePlace() {
        ledger.batched(0, 0, 0, null, true);
        ledger.batched(0, 1, 0, "m2po", true);
        ledger.batched(0, 2, 0, "", true);
        ledger.batched(0, 3, 1, null, false);
        ledger.dropped(0, 4, "zero-variance");
        ledger.dropped(1, 70_000, "duplicate");
        ledger.deadLettered(0, 5, "reward");
        ledger.scored(0, 6);
        ledger.scored(0, 0);
        rollouts(0, 0, 8, FIRST);
        rollouts(1, 70_000, 70_002, SECOND);
        ledger.rollout(1, 199_999, RolloutOrigin.NOT_OURS, "", 5000);

        Balance balance = balance();

        assertThat(balance.byOrigin())
                .isEqualTo(Map.of(
                        FIRST,
                        new Tally(
                                8,
                                1,
                                Map.of("m2po", 1L, "its own mask", 1L),
                                Map.of("zero-variance", 1L),
                                Map.of("reward", 1L),
                                new Tally.Unfinished(1, 1, 1, 0, 0)),
                        SECOND,
                        new Tally(
                                2, 0, Map.of(), Map.of("duplicate", 1L), Map.of(), new Tally.Unfinished(1, 0, 0, 0, 0)),
                        RolloutOrigin.NOT_OURS,
                        new Tally(1, 0, Map.of(), Map.of(), Map.of(), new Tally.Unfinished(1, 0, 0, 0, 0))));
        assertThat(balance.all().generated()).isEqualTo(11);
        assertThat(balance.all().inFlight()).isEqualTo(5);
        assertThat(balance.oldestWaiting())
                .containsExactly(
                        new OldestPending("a step on its batch", "g-0/3", 1003),
                        new OldestPending("its group or batch", "g-0/6", 1006),
                        new OldestPending("a score", "g-0/7", 1007));
        assertThat(balance.addsUp()).isTrue();
    }

    @Test
    void shouldNameTheRolloutThatTwoBatchesTook() {
        ledger.batched(0, 7, 3, null, true);
        ledger.batched(0, 7, 9, null, false);
        rollouts(0, 0, 8, FIRST);
        assertThat(balance().addsUp()).isFalse();
        assertThat(balance().contradictions())
                .containsExactly("rollout g-0/7 at rollouts-0@7: batch 9 takes it, and it is already trained on");
        assertThat(balance().all().trained()).isEqualTo(1);
    }

    @Test
    void shouldNameTheRolloutThatWasDroppedAndTrainedOn() {
        ledger.batched(0, 7, 3, null, true);
        ledger.dropped(0, 7, "stale");
        rollouts(0, 0, 8, FIRST);
        assertThat(balance().contradictions())
                .containsExactly("rollout g-0/7 at rollouts-0@7: it is dropped as stale, and it is already trained on");
    }

    @Test
    void shouldReportADecisionAboutARecordThatIsNotThere() {
        ledger.batched(0, 7, 3, null, true);
        ledger.dropped(0, 100, "stale");
        rollouts(0, 0, 7, FIRST);
        assertThat(balance().contradictions())
                .containsExactly(
                        "rollouts-0@100: it is dropped as stale, beyond the end of the topic",
                        "rollouts-0@7: it is trained on, and there is no record");
    }

    @Test
    void shouldCountEveryContradictionAndNameTheFirst() {
        for (int i = 0; i < 90; i++) {
            ledger.deadLettered(0, i, "reward");
            ledger.deadLettered(0, i, "late");
        }
        rollouts(0, 0, 100, FIRST);
        Balance balance = balance();
        assertThat(balance.contradictionCount()).isEqualTo(90);
        assertThat(balance.contradictions()).hasSize(Ledger.NAMED_CONTRADICTIONS);
    }

    @Test
    void shouldNotCallMissingWhatRetentionHasDeleted() {
        ledger.batched(1, 20, 3, null, true); // before the range
        ledger.batched(1, 60, 3, null, true); // deleted while it was read
        rollouts(1, 61, 63, FIRST);
        Balance balance = ledger.balance(Map.of(1, 61L), List.of());
        assertThat(balance.addsUp()).isTrue();
        assertThat(balance.gaps()).containsExactly("the rollouts of 1 decisions were deleted by retention");
    }

    @Test
    void shouldNotSayThatARolloutIsInFlightWhoseDecisionMayBeDeleted() {
        ledger.decisionsKeptSince(1005);
        rollouts(0, 0, 10, FIRST);
        Tally all = balance().all();
        assertThat(all.unfinished().expired()).isEqualTo(5);
        assertThat(all.inFlight()).isEqualTo(5);
        assertThat(balance().addsUp()).isTrue();
    }

    @Test
    void shouldCountARolloutThatWasRedrivenOnceAsWhatBecameOfIt() {
        ledger.batched(0, 9, 3, null, true);
        ledger.deadLettered(0, 7, "reward");
        ledger.redriven(0, 7, 9);
        rollouts(0, 7, 10, FIRST);
        assertThat(balance().byOrigin().get(FIRST))
                .isEqualTo(new Tally(2, 1, Map.of(), Map.of(), Map.of(), new Tally.Unfinished(1, 0, 0, 0, 0)));
        assertThat(balance().redriven()).isEqualTo(1);
        assertThat(balance().addsUp()).isTrue();
    }

    @Test
    void shouldCountALetterAsLongAsItsRecordThatWasRedrivenIsNotToBeSeen() {
        ledger.deadLettered(0, 7, "reward");
        ledger.redriven(0, 7, 100);
        rollouts(0, 7, 10, FIRST);
        assertThat(balance().all().deadLettered()).isEqualTo(Map.of("reward", 1L));
        assertThat(balance().all().generated()).isEqualTo(3);
    }

    @Test
    void shouldLetARefusedTrajectoryStandForItsRolloutUntilItIsRedriven() {
        ledger.batched(0, 1, 3, null, true);
        ledger.trajectoryDeadLettered(0, 0, "siblings");
        ledger.trajectoryDeadLettered(0, 1, "siblings"); // a stranger's copy
        ledger.trajectoryDeadLettered(0, 2, "siblings");
        ledger.trajectoryRedriven(0, 2);
        rollouts(0, 0, 3, FIRST);
        assertThat(balance().all())
                .isEqualTo(new Tally(
                        3, 1, Map.of(), Map.of(), Map.of("siblings", 1L), new Tally.Unfinished(1, 0, 0, 0, 0)));
        assertThat(balance().addsUp()).isTrue();
    }

    @Test
    void shouldKeepCountingWhenThereAreMoreReasonsThanABytesWorth() {
        for (int i = 0; i < 90; i++) {
            ledger.dropped(0, i, "reason-" + i);
        }
        ledger.deadLettered(0, 90, "late");
        rollouts(0, 0, 91, FIRST);
        Tally all = balance().all();
        assertThat(all.droppedInAll()).isEqualTo(90);
        assertThat(all.dropped()).containsKey("other").hasSizeLessThan(64);
        assertThat(all.deadLettered()).isEqualTo(Map.of("other", 1L));
        assertThat(balance().addsUp()).isTrue();
    }

    @Test
    void shouldRefuseADecisionAfterTheRecords() {
        rollouts(0, 0, 1, FIRST);
        assertThatThrownBy(() -> ledger.dropped(0, 0, "stale")).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void shouldRememberTheWordOfAStepInAByte() {
        StepWords words = StepWords.of(List.of(
                new StepEntry(5, null), new StepEntry(0, "m2po"), new StepEntry(0, null), new StepEntry(0, "m2po")));
        assertThat(words.codes()).containsExactly(0, 1, 2, 1);
        assertThat(words.maskedBy(0)).isNull();
        assertThat(words.maskedBy(2)).isEmpty();
        assertThat(words.maskedBy(3)).isEqualTo("m2po");
    }

    @Test
    void shouldCallSupersededWhatAnOlderEpochLeftInFlight() {
        Ledger later = new Ledger(Map.of(0, new OffsetRange(0, 100)), 2);
        later.batched(0, 0, 0, null, true);
        later.batched(0, 1, 1, null, false);
        later.scored(0, 2);
        later.batched(0, 4, 1, null, false);
        for (int offset = 0; offset < 4; offset++) {
            later.rollout(0, offset, new RolloutOrigin(1, 0), "1-0/" + offset, 1000);
        }
        later.rollout(0, 4, new RolloutOrigin(2, 0), "2-0/0", 2000);

        Balance balance = later.balance(Map.of(), List.of());

        assertThat(balance.byOrigin())
                .isEqualTo(Map.of(
                        new RolloutOrigin(1, 0),
                        new Tally(4, 1, Map.of(), Map.of(), Map.of(), new Tally.Unfinished(0, 0, 0, 0, 3)),
                        new RolloutOrigin(2, 0),
                        new Tally(1, 0, Map.of(), Map.of(), Map.of(), new Tally.Unfinished(0, 0, 1, 0, 0))));
        assertThat(balance.oldestWaiting()).extracting(OldestPending::rolloutId).containsExactly("2-0/0");
        assertThat(balance.addsUp()).isTrue();
    }

    @Test
    void shouldCallARecordThatIsThereOnceMoreACopyAndAnotherOneOfItsNameAContradiction() {
        TrainedBatches trained = new TrainedBatches(ledger, "training-log", false, "batches", false);
        trained.step(step(0), new RecordDigest("aa"));
        trained.step(step(0), new RecordDigest("aa"));
        trained.batch(batch(0, 0), "batches-0@0", new RecordDigest("b0"));
        trained.batch(batch(0, 0), "batches-0@2", new RecordDigest("b0"));
        rollouts(0, 0, 1, FIRST);
        trained.check();
        assertThat(balance().unmatched().copies()).isEqualTo(Map.of("batches", 1L, "training-log", 1L));
        assertThat(balance().all().trained()).isEqualTo(1);
        assertThat(balance().addsUp()).isTrue();

        trained.step(step(0), new RecordDigest("bb"));
        assertThat(balance().contradictions())
                .containsExactly("batch 0 was trained on twice, to version 1 and to version 1");
    }

    @Test
    void shouldCountRecordsThatNameNoPlaceOfTheTopicAsStrays() {
        ledger.batched(99, 0, 0, null, true);
        ledger.batched(0, -1, 0, null, true);
        ledger.dropped(99, 7, "stale");
        ledger.dropped(-1, Long.MAX_VALUE, "stale");
        ledger.dropped(0, Long.MIN_VALUE, "stale");
        assertThat(ledger.deadLettered(99, 0, "reward")).isTrue();
        ledger.trajectoryDeadLettered(99, 0, "reward");
        ledger.redriven(99, 0, 0);
        ledger.scored(99, 0);
        ledger.scored(0, -1);
        assertThat(ledger.isDecided(new RolloutPlace(99, 7))).isFalse();
        assertThat(ledger.isDropped(new RolloutPlace(99, 7))).isFalse();
        rollouts(0, 0, 1, FIRST);

        assertThat(balance().unmatched().strays())
                .isEqualTo(Map.of("batches", 2L, "dead-letters", 1L, "outcomes", 3L, "scores", 2L));
        assertThat(balance().addsUp()).isTrue();
        assertThat(balance().gaps()).isEmpty();
        assertThat(balance().all().inFlight()).isEqualTo(1);
    }

    @Test
    void shouldCallABatchWithoutAStepACopyIfEarlierBatchesHaveAllOfIt() {
        TrainedBatches trained = new TrainedBatches(ledger, "training-log", false, "batches", false);
        trained.step(step(0), new RecordDigest("aa"));
        trained.batch(batch(0, 0), "batches-0@0", new RecordDigest("b0"));
        trained.batch(batch(50, 0), "batches-0@2", new RecordDigest("b50"));
        trained.batch(batch(1, 1), "batches-0@4", new RecordDigest("b1"));
        rollouts(0, 0, 2, FIRST);
        trained.check();
        assertThat(balance().unmatched().copies()).isEqualTo(Map.of("batches", 1L));
        assertThat(balance().all().trained()).isEqualTo(1);
        assertThat(balance().all().unfinished().waitingForStep()).isEqualTo(1);
        assertThat(balance().addsUp()).isTrue();
    }

    @Test
    void shouldCountADeadLetterThatIsThereOnceMoreOnce() {
        assertThat(ledger.deadLettered(0, 0, "reward")).isTrue();
        assertThat(ledger.deadLettered(0, 0, "reward")).isFalse();
        rollouts(0, 0, 1, FIRST);
        assertThat(balance().all().deadLettered()).isEqualTo(Map.of("reward", 1L));
        assertThat(balance().addsUp()).isTrue();
    }

    @Test
    void shouldTellAnOutcomeAboutACopyFromASecondDecision() {
        ledger.batched(0, 0, 0, null, true);
        ledger.batched(0, 1, 0, null, true);
        ledger.dropped(0, 2, "stale");
        StrayOutcomes strays = new StrayOutcomes(ledger);
        strays.suspect(new RolloutPlace(0, 0));
        strays.suspect(new RolloutPlace(0, 1));
        strays.suspect(new RolloutPlace(0, 2));
        strays.outcome(new RolloutPlace(0, 2), "stale", new RecordDigest("a"));
        strays.outcome(new RolloutPlace(0, 0), "group-short", new RecordDigest("b"));
        strays.outcome(new RolloutPlace(0, 0), "group-short", new RecordDigest("b"));
        strays.outcome(new RolloutPlace(0, 1), "group-short", new RecordDigest("c"));
        strays.outcome(new RolloutPlace(0, 2), "stale", new RecordDigest("a"));
        assertThat(strays.areLeft()).isTrue();
        strays.trajectory(new RolloutPlace(0, 0));
        strays.trajectory(new RolloutPlace(0, 0));
        strays.trajectory(new RolloutPlace(0, 1));
        strays.trajectory(new RolloutPlace(0, 7));
        strays.settle("outcomes", "trajectories");
        rollouts(0, 0, 3, FIRST);

        assertThat(balance().unmatched().copies()).isEqualTo(Map.of("outcomes", 2L, "trajectories", 1L));
        assertThat(balance().contradictions())
                .containsExactly(
                        "rollout g-0/1 at rollouts-0@1: it is dropped as group-short, and it is already trained on");
        assertThat(balance().all().trained()).isEqualTo(2);
    }

    @Test
    void shouldKeepWhatWasDecidedOfARolloutThatWasReadAgainAndCalledADuplicateOfItself() {
        ledger.batched(0, 0, 0, null, true);
        ledger.dropped(0, 1, "stale");
        ledger.dropped(0, 2, "duplicate");
        StrayOutcomes strays = new StrayOutcomes(ledger);
        for (int offset = 0; offset < 3; offset++) {
            strays.suspect(new RolloutPlace(0, offset));
        }
        strays.outcome(new RolloutPlace(0, 0), "duplicate", new RecordDigest("a"));
        strays.outcome(new RolloutPlace(0, 1), "stale", new RecordDigest("b"));
        strays.outcome(new RolloutPlace(0, 1), "duplicate", new RecordDigest("c"));
        strays.outcome(new RolloutPlace(0, 2), "duplicate", new RecordDigest("d"));
        strays.outcome(new RolloutPlace(0, 2), "group-short", new RecordDigest("e"));
        strays.settle("outcomes", "trajectories");
        rollouts(0, 0, 3, FIRST);

        assertThat(balance().unmatched().copies()).isEqualTo(Map.of("outcomes", 3L));
        assertThat(balance().all().trained()).isEqualTo(1);
        assertThat(balance().all().dropped()).isEqualTo(Map.of("stale", 1L, "group-short", 1L));
        assertThat(balance().addsUp()).isTrue();
    }

    @Test
    void shouldBelieveTheOutcomesOfABatchThatWasGivenUpThoughItIsOnTheLog() {
        TrainedBatches trained = new TrainedBatches(ledger, "training-log", false, "batches", false);
        trained.step(step(0), new RecordDigest("a0"));
        trained.step(
                TrainingStep.newBuilder(step(1))
                        .setStarved(true)
                        .setRolloutsTrained(0)
                        .setRolloutsMasked(0)
                        .build(),
                new RecordDigest("a1"));
        trained.batch(batch(0, 0), "batches-0@0", new RecordDigest("b0"));
        trained.batch(batch(1, 1), "batches-0@1", new RecordDigest("b1"));
        ledger.dropped(0, 1, "batch-lost");
        rollouts(0, 0, 2, FIRST);
        trained.check();

        assertThat(balance().all().trained()).isEqualTo(1);
        assertThat(balance().all().dropped()).isEqualTo(Map.of("batch-lost", 1L));
        assertThat(balance().addsUp()).isTrue();
    }

    @Test
    void shouldCountRolloutsByTheirBatchWhereItsStepIsLost() {
        TrainedBatches trained = new TrainedBatches(ledger, "training-log", false, "batches", false);
        trained.step(step(0), new RecordDigest("a0"));
        trained.step(step(2), new RecordDigest("a2"));
        for (int i = 0; i < 4; i++) {
            trained.batch(batch(i, i), "batches-0@" + i, new RecordDigest("b" + i));
        }
        rollouts(0, 0, 4, FIRST);
        trained.check();
        assertThat(trained.gaps())
                .containsExactly(
                        "the step on batch 1 is lost, and later ones are there; its rollouts count as the batch says");
        assertThat(balance().all().trained()).isEqualTo(3);
        assertThat(balance().all().unfinished().waitingForStep()).isEqualTo(1);
        assertThat(balance().addsUp()).isTrue();
    }

    @Test
    void shouldCallWhatLiesBehindLaterOnesACopyOfWhatRetentionHasDeleted() {
        TrainedBatches trained = new TrainedBatches(ledger, "training-log", true, "batches", true);
        trained.step(step(7), new RecordDigest("a7"));
        trained.step(step(3), new RecordDigest("a3"));
        trained.batch(batch(7, 0), "batches-0@9", new RecordDigest("b7"));
        trained.batch(batch(3, 1), "batches-0@11", new RecordDigest("b3"));
        rollouts(0, 0, 1, FIRST);
        trained.check();
        assertThat(balance().unmatched().copies()).isEqualTo(Map.of("batches", 1L, "training-log", 1L));
        assertThat(balance().addsUp()).isTrue();
    }

    private static TrainingStep step(long batchId) {
        return TrainingStep.newBuilder()
                .setRunId("run-1")
                .setEpoch(0)
                .setPolicyId("policy")
                .setBatchId(batchId)
                .setVersion(batchId + 1)
                .setWeightsSha256("00")
                .setRolloutsTrained(1)
                .setRolloutsMasked(0)
                .setTokensTrained(3)
                .setRewardMean(0.5)
                .setLearningRate(1e-3)
                .setMetrics(Map.of())
                .setStartedAtMs(1)
                .setFinishedAtMs(2)
                .build();
    }

    private static LearnerBatch batch(long batchId, long rolloutOffset) {
        BatchEntry entry = new BatchEntry();
        entry.put("rollout_partition", 0);
        entry.put("rollout_offset", rolloutOffset);
        entry.put("trained_tokens", 3);
        LearnerBatch batch = new LearnerBatch();
        batch.put("epoch", 0);
        batch.put("batch_id", batchId);
        batch.put("entries", List.of(entry));
        return batch;
    }
}
