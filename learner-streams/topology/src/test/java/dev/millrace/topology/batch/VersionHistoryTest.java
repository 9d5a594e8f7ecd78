package dev.millrace.topology.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.topology.batch.VersionHistory.Publication;
import java.util.List;
import org.junit.jupiter.api.Test;

class VersionHistoryTest {
    private final VersionHistory history = new VersionHistory();

    private static Member member(long timestampMs, long version, long proximal) {
        return new Member(
                "g/0",
                "g",
                0,
                0,
                1,
                0,
                0,
                new LogCoordinates("rollouts", 0, 0L),
                timestampMs,
                timestampMs,
                1,
                List.of(new VersionSpan(version, 0, 1)),
                proximal,
                1,
                new int[] {1});
    }

    private void published(long version, long timestampMs) {
        history.add(version, new Publication(version - 1, timestampMs));
    }

    @Test
    void shouldNameTheVersionThatWasCurrentAtTheTime() {
        published(0, 100);
        published(1, 200);
        published(2, 300);
        assertThat(history.current(List.of(member(150, 0, 0), member(250, 0, 0)), Long.MIN_VALUE))
                .isEqualTo(1);
        assertThat(history.current(List.of(member(200, 0, 0)), Long.MIN_VALUE)).isEqualTo(1);
        assertThat(history.current(List.of(member(200, 0, 0)), 300)).isEqualTo(2);
        assertThat(history.current(List.of(member(50, 0, 0)), Long.MIN_VALUE))
                .as("shown by the member itself")
                .isZero();
    }

    @Test
    void shouldBelieveWhatAMemberShows() {
        published(0, 100);
        published(3, 900);
        assertThat(history.current(List.of(member(150, 1, 2)), Long.MIN_VALUE)).isEqualTo(2);
    }

    @Test
    void shouldLackVersionsAboveTheNewest() {
        assertThat(history.lacksVersionOf(member(0, 5, 5)))
                .as("where nobody publishes")
                .isFalse();
        published(4, 100);
        assertThat(history.lacksVersionOf(member(0, 4, 4))).isFalse();
        assertThat(history.lacksVersionOf(member(0, 5, 4))).isTrue();
        assertThat(history.lacksVersionOf(member(0, 4, 5))).isTrue();
    }

    @Test
    void shouldForgetOnlyWhatIsOlderThanTheCurrentOne() {
        published(0, 100);
        published(1, 200);
        published(2, 300);
        history.addStarved(0, new VersionHistory.Starved(0, 150));
        history.addStarved(5, new VersionHistory.Starved(1, 220));
        assertThat(history.forgetBefore(250)).isEqualTo(new VersionHistory.Forgotten(List.of(0L), List.of(0L)));
        assertThat(history.consumedMsOf(5)).isEqualTo(220);
        assertThat(history.current(List.of(member(250, 0, 0)), Long.MIN_VALUE)).isEqualTo(1);
        assertThat(history.consumedMsOf(1)).isEqualTo(300);
        assertThat(history.consumedMsOf(-1)).isEqualTo(Long.MIN_VALUE);
    }

    @Test
    void shouldCountTheBatchesAheadOfTheStep() {
        history.add(0, new VersionHistory.Publication(-1, 100));
        history.add(1, new VersionHistory.Publication(0, 200));

        assertThat(history.expectedAtStep(1, 1, 250))
                .as("the learner waits for it")
                .isEqualTo(1);
        assertThat(history.expectedAtStep(4, 1, 250))
                .as("batches 1 to 3 lie before it")
                .isEqualTo(4);
        assertThat(history.expectedAtStep(4, 0, 150)).as("and 0, by then").isEqualTo(4);
        assertThat(history.expectedAtStep(4)).isEqualTo(4);
    }

    @Test
    void shouldExpectNoVersionOfABatchThatWasStarved() {
        history.add(0, new VersionHistory.Publication(-1, 100));
        history.addStarved(0, new VersionHistory.Starved(0, 200));
        history.addStarved(1, new VersionHistory.Starved(0, 300));

        assertThat(history.expectedAtStep(3, 0, 350))
                .as("batch 2 lies before it")
                .isEqualTo(1);
        assertThat(history.expectedAtStep(3, 0, 250)).as("batch 1 too, by then").isEqualTo(2);
    }

    @Test
    void shouldExpectNothingWhereNobodyPublishes() {
        assertThat(history.expectedAtStep(7, 3, 100)).isEqualTo(3);
    }
}
