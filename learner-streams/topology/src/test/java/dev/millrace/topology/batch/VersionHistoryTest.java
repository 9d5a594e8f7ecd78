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
        assertThat(history.forgetBefore(250)).containsExactly(0L);
        assertThat(history.current(List.of(member(250, 0, 0)), Long.MIN_VALUE)).isEqualTo(1);
        assertThat(history.publishedMsOf(1)).isEqualTo(300);
        assertThat(history.publishedMsOf(-1)).isEqualTo(Long.MIN_VALUE);
    }
}
