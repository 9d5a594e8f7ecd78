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
        long question = commit.ask();
        assertThat(commit.askInMs(1000)).as("at the end of the turn").isEqualTo(1);
        assertThat(commit.isDue(0, 1001)).as("nothing was made since").isFalse();
        assertThat(commit.settle(question, 1001)).isEqualTo(Settling.NOTHING);
        assertThat(commit.beginsToSettle()).as("nothing was made since").isFalse();
    }

    @Test
    void shouldLeaveATaskThatLagsBehindToTheEngine() {
        commit.made(true, 1000);

        assertThat(commit.isDue(201, 1000)).isFalse();
        assertThat(commit.beginsToSettle()).isFalse();
        assertThat(commit.isDue(201, 1200)).isFalse();
        assertThat(commit.isDue(200, 1200)).as("it has caught up").isTrue();
    }

    @Test
    void shouldAskNoLongerOnceATaskLagsBehind() {
        commit.made(false, 1000);
        commit.isDue(0, 1000);
        long question = commit.ask();
        commit.isDue(201, 1005);

        assertThat(commit.settle(question, 1020)).isEqualTo(Settling.NOTHING);
    }

    @Test
    void shouldCommitABurstOnceNothingFollows() {
        commit.made(false, 1000);
        assertThat(commit.isDue(0, 1000)).isFalse();
        assertThat(commit.beginsToSettle()).isTrue();
        long question = commit.ask();
        assertThat(commit.askInMs(1000)).isEqualTo(10);
        commit.made(false, 1008);
        assertThat(commit.isDue(0, 1008)).isFalse();
        assertThat(commit.beginsToSettle()).as("somebody asks already").isFalse();

        assertThat(commit.settle(question, 1010)).as("a record came since").isEqualTo(Settling.ASK_LATER);
        assertThat(commit.askInMs(1010)).isEqualTo(20);
        assertThat(commit.settle(question, 1030)).isEqualTo(Settling.COMMIT);
        assertThat(commit.beginsToSettle()).as("nothing was made since").isFalse();
    }

    @Test
    void shouldCommitSingleRecordsTwiceInAnIntervalAtMost() {
        commit.made(false, 1000);
        commit.isDue(0, 1000);
        assertThat(commit.settle(commit.ask(), 1010)).isEqualTo(Settling.COMMIT);
        commit.made(false, 1020);
        commit.isDue(0, 1020);
        assertThat(commit.beginsToSettle()).isTrue();
        long question = commit.ask();

        assertThat(commit.settle(question, 1030)).isEqualTo(Settling.ASK_LATER);
        assertThat(commit.askInMs(1030)).isEqualTo(10);
        assertThat(commit.settle(question, 1050)).isEqualTo(Settling.ASK_LATER);
        assertThat(commit.settle(question, 1060)).isEqualTo(Settling.COMMIT);
    }

    @Test
    void shouldLetNothingWaitLongerThanTheInterval() {
        commit.made(false, 1000);
        commit.isDue(0, 1000);
        long question = commit.ask();
        for (long nowMs = 1000; nowMs < 1100; nowMs++) {
            assertThat(commit.isDue(0, nowMs)).isFalse();
            assertThat(commit.settle(question, nowMs)).isEqualTo(Settling.ASK_LATER);
            assertThat(nowMs + commit.askInMs(nowMs)).isLessThanOrEqualTo(1100);
        }

        assertThat(commit.isDue(0, 1100)).isTrue();
    }

    @Test
    void shouldCommitWhatWaitedWhereNoRecordComes() {
        commit.made(false, 1000);
        long question = commit.ask();
        commit.isDue(0, 1095);

        assertThat(commit.settle(question, 1100)).isEqualTo(Settling.COMMIT);
    }

    @Test
    void shouldAskSeldomWhereRecordsNeverStopAndSoonOnceTheyDid() {
        for (int i = 0; i < 5; i++) {
            commit.made(false, 1000);
            commit.isDue(0, 1000);
            commit.settle(commit.ask(), 1001);
        }
        assertThat(commit.askInMs(1000)).as("the interval").isEqualTo(100);

        assertThat(commit.settle(commit.ask(), 1050)).isEqualTo(Settling.COMMIT);
        commit.made(false, 1060);
        assertThat(commit.askInMs(1060)).isEqualTo(10);
    }

    /** A turn's second record was made before its commit, which takes longer than the interval. */
    @Test
    void shouldNotCountTheTimeOfACommitAsWaiting() {
        commit.made(false, 1000);
        commit.ask();
        commit.made(false, 1100);
        assertThat(commit.isDue(0, 1100)).isTrue();
        long behind = commit.ask();
        commit.made(true, 1101);
        assertThat(commit.isDue(0, 1101)).as("in the turn before the commit").isFalse();
        assertThat(commit.settle(behind, 1102)).as("the turn's end").isEqualTo(Settling.NOTHING);

        commit.made(false, 1260);
        assertThat(commit.isDue(0, 1260)).isFalse();
        assertThat(commit.isDue(0, 1359)).isFalse();
        assertThat(commit.isDue(0, 1360)).isTrue();
    }

    @Test
    void shouldAnswerTheNewestQuestionOnly() {
        commit.made(false, 990);
        commit.isDue(0, 990);
        long before = commit.ask();
        long newest = commit.ask();

        assertThat(commit.settle(before, 1010)).isEqualTo(Settling.NOTHING);
        assertThat(commit.settle(newest, 1010)).isEqualTo(Settling.COMMIT);
    }

    @Test
    void shouldAskAgainForTheNextOneOnceATaskWasClosed() {
        commit.made(false, 1000);
        commit.isDue(0, 1000);
        commit.ask();
        commit.stopSettling();

        assertThat(commit.beginsToSettle()).isTrue();
    }
}
