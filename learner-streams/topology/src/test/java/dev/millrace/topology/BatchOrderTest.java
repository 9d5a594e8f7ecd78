package dev.millrace.topology;

import static dev.millrace.topology.Samples.rollout;
import static dev.millrace.topology.Samples.score;
import static dev.millrace.topology.Samples.starved;
import static dev.millrace.topology.Samples.version;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Rollout;
import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.topology.batch.BatchConfig.Order;
import dev.millrace.topology.batch.GroupsConfig;
import dev.millrace.topology.batch.GroupsConfig.ZeroVariance;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BatchOrderTest {
    @TempDir
    Path directory;

    private TopologyHarness topology;

    @AfterEach
    void close() {
        topology.close();
    }

    private void open(BatchConfig batch) {
        TopologyConfig defaults = TopologyConfig.defaults();
        topology = new TopologyHarness(
                new TopologyConfig(
                        defaults.ingress(),
                        defaults.join(),
                        new GroupsConfig(60_000, 2, 10_000, 600_000, ZeroVariance.DROP),
                        batch,
                        defaults.runtime()),
                directory);
        topology.pipe(version(9, -1));
        topology.later(Duration.ofSeconds(1));
    }

    private void pipe(Rollout rollout) {
        topology.pipe(score(rollout, topology.pipe(rollout)).build());
    }

    private void pipeGroup(long ordinal, int tokens, long version, double firstReward) {
        for (int i = 0; i < 2; i++) {
            pipe(rollout("g" + ordinal, i, 2, tokens, -1f, version)
                    .setOrdinal(ordinal)
                    .setReward(i == 0 ? firstReward : 1)
                    .build());
        }
    }

    private void pipeGroup(long ordinal) {
        pipeGroup(ordinal, 3, 8, 0);
    }

    private List<String> groupsOfNextBatches() {
        return topology.batches().stream()
                .map(batch -> String.join(
                        " ",
                        batch.getEntries().stream()
                                .map(BatchEntry::getGroupId)
                                .distinct()
                                .toList()))
                .toList();
    }

    @Test
    void shouldBatchInTheOrderOfSubmissionWhateverIsReadyFirst() {
        open(new BatchConfig(4, 0, Order.SUBMISSION, 0, false));
        pipeGroup(2);
        pipeGroup(1);
        pipeGroup(3);
        assertThat(topology.batches()).isEmpty();
        pipeGroup(0);
        assertThat(groupsOfNextBatches()).containsExactly("g0 g1", "g2 g3");
    }

    @Test
    void shouldNotWaitForGroupsThatHaveLeft() {
        open(new BatchConfig(4, 0, Order.SUBMISSION, 0, false));
        pipeGroup(1);
        pipeGroup(2);
        pipeGroup(0, 3, 8, 1); // both rewards are 1
        assertThat(topology.outcomeNames()).hasSize(2).allMatch(name -> name.startsWith("zero-variance g0"));
        assertThat(groupsOfNextBatches()).containsExactly("g1 g2");
    }

    @Test
    void shouldPassOverARequestThatBringsNoSamples() {
        open(new BatchConfig(4, 0, Order.SUBMISSION, 0, false));
        pipeGroup(1);
        pipeGroup(2);
        topology.idle(Duration.ofSeconds(58));
        assertThat(topology.batches()).isEmpty();
        topology.idle(Duration.ofSeconds(4));
        assertThat(groupsOfNextBatches()).containsExactly("g1 g2");
        pipeGroup(0);
        pipeGroup(3);
        assertThat(groupsOfNextBatches())
                .as("and it passes on its own if it comes after all")
                .containsExactly("g0 g3");
    }

    @Test
    void shouldHoldBatchesBackWhileTheLearnerHasEnough() {
        open(new BatchConfig(2, 0, Order.COMPLETION, 2, false));
        for (int g = 0; g < 5; g++) {
            pipeGroup(g);
        }
        assertThat(groupsOfNextBatches()).containsExactly("g0", "g1");
        topology.pipe(version(10, 0));
        assertThat(groupsOfNextBatches()).containsExactly("g2");
        topology.pipe(version(11, 1));
        topology.pipe(version(12, 2));
        assertThat(groupsOfNextBatches()).containsExactly("g3", "g4");
    }

    @Test
    void shouldTakeTheFreshestFirstWhereThereIsAChoice() {
        open(new BatchConfig(2, 0, Order.FRESHEST, 1, false));
        pipeGroup(0, 3, 5, 0);
        pipeGroup(1, 3, 6, 0);
        pipeGroup(2, 3, 8, 0);
        pipeGroup(3, 3, 7, 0);
        assertThat(groupsOfNextBatches()).containsExactly("g0");
        topology.pipe(version(10, 0));
        topology.pipe(version(11, 1));
        assertThat(groupsOfNextBatches()).containsExactly("g2", "g3");
    }

    @Test
    void shouldJudgeGroupsByTheVersionThatIsCurrentWhenTheyAreNeeded() {
        open(new BatchConfig(2, 0, Order.COMPLETION, 1, false));
        pipeGroup(0);
        pipeGroup(1);
        assertThat(topology.batches().get(0).getAssembledVersion()).isEqualTo(9);
        topology.later(Duration.ofSeconds(1));
        topology.pipe(version(10, 0));
        assertThat(topology.batches().get(0).getAssembledVersion()).isEqualTo(10);
    }

    @Test
    void shouldCountStalenessFromTheVersionAtWhichTheStepWillStart() {
        open(new BatchConfig(2, 0, Order.COMPLETION, 0, false));
        for (int g = 0; g < 3; g++) {
            pipeGroup(g);
        }
        List<LearnerBatch> batches = topology.batches();
        assertThat(batches).extracting(LearnerBatch::getAssembledVersion).containsExactly(9L, 9L, 9L);
        assertThat(batches).extracting(LearnerBatch::getExpectedVersion).containsExactly(9L, 10L, 11L);
        assertThat(batches).extracting(LearnerBatch::getStalenessMax).containsExactly(1L, 2L, 3L);
    }

    @Test
    void shouldExpectNoVersionOfAStarvedBatch() {
        open(new BatchConfig(2, 0, Order.COMPLETION, 1, false));
        for (int g = 0; g < 3; g++) {
            pipeGroup(g);
        }
        assertThat(groupsOfNextBatches()).containsExactly("g0");
        topology.later(Duration.ofSeconds(1));
        topology.pipe(starved(0, 9));
        assertThat(topology.batches())
                .as("it is consumed, and the version stays")
                .singleElement()
                .satisfies(batch -> {
                    assertThat(batch.getBatchId()).isEqualTo(1);
                    assertThat(batch.getExpectedVersion()).isEqualTo(9);
                });
    }

    /** Of version 3: the step at version 11 is the last within the limit of 8, that of batch 2. */
    @Test
    void shouldNotOvertakeAnOlderGroupPastTheLimitWhileTheLearnerHasBatches() {
        open(new BatchConfig(2, 0, Order.COMPLETION, 0, false));
        pipeHalfOfTheOldGroup(0);
        pipeGroup(1);
        pipeGroup(2);
        assertThat(groupsOfNextBatches()).as("it still has a later chance").containsExactly("g1", "g2");

        pipeGroup(3);
        assertThat(topology.batches()).isEmpty();
        pipeHalfOfTheOldGroup(1);
        assertThat(groupsOfNextBatches()).containsExactly("g0", "g3");
    }

    @Test
    void shouldNotKeepAnIdleLearnerWaitingForAnOldGroup() {
        open(new BatchConfig(2, 0, Order.COMPLETION, 0, false));
        pipeHalfOfTheOldGroup(0);
        pipeGroup(1);
        pipeGroup(2);
        pipeGroup(3);
        assertThat(groupsOfNextBatches()).containsExactly("g1", "g2");
        topology.later(Duration.ofSeconds(1));
        topology.pipe(version(10, 0));
        assertThat(topology.batches()).isEmpty();
        topology.pipe(version(11, 1));
        assertThat(groupsOfNextBatches()).containsExactly("g3");

        pipeHalfOfTheOldGroup(1);
        assertThat(topology.batches()).isEmpty();
        assertThat(topology.outcomeNames()).hasSize(2).allMatch(name -> name.startsWith("stale g0"));
    }

    @Test
    void shouldTakeReadyGroupsFirstThatHaveNoLaterChance() {
        open(new BatchConfig(2, 0, Order.COMPLETION, 1, false));
        pipeGroup(7);
        pipeGroup(8);
        pipeGroup(6, 3, 2, 0); // its last step is that at version 10
        assertThat(groupsOfNextBatches()).containsExactly("g7");
        topology.later(Duration.ofSeconds(1));
        topology.pipe(version(10, 0));
        assertThat(groupsOfNextBatches()).containsExactly("g6");
    }

    /** Nothing has come of g0 yet; g5 is of version 3, for which batch 2 is the last, and g0 is taken to be as old. */
    @Test
    void shouldWaitForARequestOfWhichNothingHasComeWhileTheLearnerHasBatches() {
        open(new BatchConfig(4, 0, Order.COMPLETION, 0, false));
        for (int g = 1; g <= 4; g++) {
            pipeGroup(g, 3, 5, 0);
        }
        assertThat(groupsOfNextBatches()).containsExactly("g1 g2", "g3 g4");
        pipeGroup(5, 3, 3, 0);
        pipeGroup(6);
        assertThat(topology.batches()).isEmpty();
        pipeGroup(0, 3, 3, 0);
        assertThat(groupsOfNextBatches()).containsExactly("g5 g0");
    }

    private void pipeHalfOfTheOldGroup(int sample) {
        pipe(rollout("g0", sample, 2, 3, -1f, 3).setOrdinal(0).setReward(sample).build());
    }

    @Test
    void shouldCutByTokensWhereAsked() {
        open(new BatchConfig(1, 100, Order.COMPLETION, 0, false));
        pipeGroup(0, 20, 8, 0);
        pipeGroup(1, 29, 8, 0);
        assertThat(topology.batches()).isEmpty();
        pipeGroup(2, 1, 8, 0);
        LearnerBatch batch = topology.batches().get(0);
        assertThat(batch.getTrainedTokens()).isEqualTo(100);
        assertThat(batch.getEntries()).hasSize(6);
    }

    @Test
    void shouldReportHowLongTheBatchedAreBesideThoseLeftBehind() {
        open(new BatchConfig(2, 0, Order.COMPLETION, 0, false));
        pipe(rollout("slow", 0, 2, 30, -1f, 8).setReward(0).build());
        pipeGroup(0, 10, 8, 0);
        var order = topology.batches().get(0).getStages().get(0);
        assertThat(order.getStage()).isEqualTo("order");
        assertThat(order.getValues()).containsEntry("mean_tokens", 10.0).containsEntry("waiting_sequences", 1.0);
        assertThat(order.getValues().get("length_bias")).isCloseTo(10 / (50 / 3.0), within(1e-12));
    }
}
