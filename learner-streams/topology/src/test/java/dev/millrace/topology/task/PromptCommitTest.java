package dev.millrace.topology.task;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class PromptCommitTest {
    private final PromptCommit commit = new PromptCommit(100);

    @Test
    void shouldCommitAtOnceWhatSomebodyWaitsFor() {
        commit.made(true, 1000);

        assertThat(commit.isDue(200, 1000)).isTrue();
        assertThat(commit.isDue(0, 1001)).as("nothing was made since").isFalse();
        assertThat(commit.isSettled(1500)).as("nothing was made since").isFalse();
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
        commit.made(false, 1008);
        assertThat(commit.isDue(0, 1008)).isFalse();

        assertThat(commit.isSettled(1010)).as("a record came 2 ms ago").isFalse();
        assertThat(commit.isSettled(1020)).isTrue();
        assertThat(commit.isSettled(1030)).as("nothing was made since").isFalse();
    }

    @Test
    void shouldCommitSingleRecordsTwiceInAnIntervalAtMost() {
        commit.made(false, 1000);
        commit.isDue(0, 1000);
        assertThat(commit.isSettled(1010)).isTrue();
        commit.made(false, 1020);
        commit.isDue(0, 1020);

        assertThat(commit.isSettled(1050)).isFalse();
        assertThat(commit.isSettled(1060)).isTrue();
    }

    @Test
    void shouldLetNothingWaitLongerThanTheInterval() {
        commit.made(false, 1000);
        for (long nowMs = 1000; nowMs < 1100; nowMs++) {
            assertThat(commit.isDue(0, nowMs)).isFalse();
            assertThat(commit.isSettled(nowMs)).isFalse();
        }

        assertThat(commit.isDue(0, 1100)).isTrue();
    }

    @Test
    void shouldNotCommitWhatLedToNothing() {
        commit.isDue(0, 1000);

        assertThat(commit.isSettled(2000)).isFalse();
    }
}
