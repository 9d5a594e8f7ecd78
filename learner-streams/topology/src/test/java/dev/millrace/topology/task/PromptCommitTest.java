package dev.millrace.topology.task;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.topology.task.PromptCommit.Settling;
import org.junit.jupiter.api.Test;

class PromptCommitTest {
    private final PromptCommit commit = new PromptCommit(100);

    @Test
    void shouldCommitAtOnceWhatSomebodyWaitsFor() {
        commit.made(true, 1000);

        assertThat(commit.isDue(200, 1000)).isTrue();
        assertThat(commit.isDue(0, 1001)).as("nothing was made since").isFalse();
        assertThat(commit.beginsToSettle())
                .as("the commit may not have been made yet")
                .isTrue();
        assertThat(commit.settle(1010)).isEqualTo(Settling.NOTHING);
        assertThat(commit.beginsToSettle()).as("nothing was made since").isFalse();
    }

    @Test
    void shouldNotHurryATaskThatLagsBehind() {
        commit.made(true, 1000);

        assertThat(commit.isDue(201, 1000)).isFalse();
        assertThat(commit.isDue(0, 1001)).as("what was made then").isFalse();
    }

    @Test
    void shouldCommitABurstOnceNothingFollows() {
        commit.made(false, 1000);
        assertThat(commit.isDue(0, 1000)).isFalse();
        assertThat(commit.beginsToSettle()).isTrue();
        commit.made(false, 1008);
        assertThat(commit.isDue(0, 1008)).isFalse();
        assertThat(commit.beginsToSettle()).as("somebody asks already").isFalse();

        assertThat(commit.settle(1010)).as("a record came since").isEqualTo(Settling.ASK_LATER);
        assertThat(commit.settle(1030)).isEqualTo(Settling.COMMIT);
        assertThat(commit.beginsToSettle()).as("nothing was made since").isFalse();
    }

    @Test
    void shouldCommitSingleRecordsTwiceInAnIntervalAtMost() {
        commit.made(false, 1000);
        commit.isDue(0, 1000);
        assertThat(commit.beginsToSettle()).isTrue();
        assertThat(commit.settle(1010)).isEqualTo(Settling.COMMIT);
        commit.made(false, 1020);
        commit.isDue(0, 1020);
        assertThat(commit.beginsToSettle()).isTrue();

        assertThat(commit.settle(1030)).isEqualTo(Settling.ASK_LATER);
        assertThat(commit.settle(1050)).isEqualTo(Settling.ASK_LATER);
        assertThat(commit.settle(1090)).isEqualTo(Settling.COMMIT);
    }

    @Test
    void shouldLetNothingWaitLongerThanTheInterval() {
        commit.made(false, 1000);
        assertThat(commit.beginsToSettle()).isTrue();
        for (long nowMs = 1000; nowMs < 1100; nowMs++) {
            assertThat(commit.isDue(0, nowMs)).isFalse();
            assertThat(commit.settle(nowMs)).isEqualTo(Settling.ASK_LATER);
        }

        assertThat(commit.isDue(0, 1100)).isTrue();
        assertThat(commit.settle(1101)).isEqualTo(Settling.NOTHING);
    }

    /** A turn's second record was made before its commit, which takes longer than the interval. */
    @Test
    void shouldNotCountTheTimeOfACommitAsWaiting() {
        commit.made(false, 1000);
        assertThat(commit.beginsToSettle()).isTrue();
        commit.made(false, 1100);
        assertThat(commit.isDue(0, 1100)).isTrue();
        commit.made(false, 1101);
        assertThat(commit.isDue(0, 1101)).isFalse();

        commit.made(false, 1260);
        assertThat(commit.isDue(0, 1260)).as("in the turn behind the commit").isFalse();
        assertThat(commit.settle(1261)).isEqualTo(Settling.ASK_LATER);
        assertThat(commit.isDue(0, 1360)).isFalse();
        assertThat(commit.isDue(0, 1361)).isTrue();
    }

    @Test
    void shouldAskAgainForTheNextOneOnceATaskWasClosed() {
        commit.made(false, 1000);
        assertThat(commit.beginsToSettle()).isTrue();
        commit.stopSettling();

        assertThat(commit.beginsToSettle()).isTrue();
    }
}
