package dev.millrace.topology.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.topology.batch.VersionHistory.Publication;
import java.util.List;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class VersionHistoryTest {
    private final VersionHistory history = new VersionHistory(0);

    private static Member member(long timestampMs, long version, long proximal) {
        return new Member(
                new Member.Sample("g/0", "g", 0, 0, 1),
                new Member.Place(0, 0, new LogCoordinates("rollouts", 0, 0L)),
                timestampMs,
                timestampMs,
                1,
                new Member.Versions(List.of(new VersionSpan(version, 0, 1)), proximal, new int[] {1}),
                1);
    }

    private void published(long version, long timestampMs) {
        published(version, version - 1, timestampMs);
    }

    private Set<Long> published(long version, long batchId, long timestampMs) {
        return history.add(version, new Publication(batchId, timestampMs)).keySet();
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
        published(1, 900);
        assertThat(history.current(List.of(member(150, 1, 2)), Long.MIN_VALUE)).isEqualTo(2);
    }

    @Test
    void shouldLackVersionsAboveTheNewest() {
        assertThat(history.lacksVersionOf(member(0, 5, 5)))
                .as("where nobody publishes")
                .isFalse();
        published(0, 100);
        published(1, 100);
        assertThat(history.lacksVersionOf(member(0, 1, 1))).isFalse();
        assertThat(history.lacksVersionOf(member(0, 2, 1))).isTrue();
        assertThat(history.lacksVersionOf(member(0, 1, 2))).isTrue();
    }

    @Test
    void shouldPassOverAVersionThatNothingLeadsTo() {
        published(0, 100);
        published(1_000_000, 150);
        published(1, 200);
        assertThat(history.current(List.of(member(300, 0, 0)), Long.MIN_VALUE)).isEqualTo(1);
        assertThat(history.lacksVersionOf(member(0, 2, 2))).isTrue();
        assertThat(history.expectedAtStep(1)).isEqualTo(1);
        assertThat(history.isAhead(1_000_000)).isTrue();
        history.deleted(1_000_000);
        assertThat(history.isAhead(1_000_000)).isFalse();
    }

    @Test
    void shouldTakeWhatWasAheadOnceTheVersionBeforeItCame() {
        published(0, 100);
        published(3, 400);
        published(2, 300);
        assertThat(history.current(List.of(member(500, 0, 0)), Long.MIN_VALUE)).isZero();
        assertThat(published(1, 0, 200)).containsExactly(1L, 2L, 3L);
        assertThat(history.current(List.of(member(500, 0, 0)), Long.MIN_VALUE)).isEqualTo(3);
    }

    @Test
    void shouldBeginWithTheVersionThatTheEpochBeginsWith() {
        VersionHistory later = new VersionHistory(7);
        assertThat(later.add(0, new Publication(-1, 100))).isEmpty();
        assertThat(later.add(8, new Publication(9, 100))).isEmpty();
        assertThat(later.isEmpty()).isTrue();
        assertThat(later.add(7, new Publication(8, 100)).keySet()).containsExactly(7L, 8L);
    }

    @Test
    void shouldLetNoVersionCountOfABatchThatAnEarlierOneIsOf() {
        published(0, 100);
        published(1, 200);
        assertThat(published(2, 0, 300)).as("of the same").isEmpty();
        assertThat(published(2, -1, 300)).as("of none").isEmpty();
        assertThat(published(2, 1, 400)).containsExactly(2L);
        assertThat(published(1, 5, 500)).as("of one behind its successor's").isEmpty();
    }

    @Test
    void shouldTakeTheBatchOfAManifestThatWasWrittenAgain() {
        published(0, 100);
        published(1, 5, 200);
        assertThat(published(1, 0, 300)).containsExactly(1L);
        assertThat(published(1, 0, 900)).as("the same once more").isEmpty();
        assertThat(history.consumedMsOf(0)).isEqualTo(300);
    }

    @Test
    void shouldGiveUpTheFarthestOfTooManyThatAreAhead() {
        for (long version = 2; version < 2 + (1 << 14); version++) {
            published(version, 100);
            assertThat(history.giveUpFarthest()).isEmpty();
        }
        published(50_000, 100);
        assertThat(history.giveUpFarthest()).hasValue(50_000);
        assertThat(history.isAhead(1 + (1 << 14))).isTrue();
    }

    @Test
    void shouldNotTakeWhatAStoreHoldsBehindAGap() {
        NavigableMap<Long, Publication> held = new TreeMap<>();
        held.put(20L, new Publication(19, 100));
        held.put(21L, new Publication(20, 200));
        held.put(1_000_000L, new Publication(20, 300));
        assertThat(history.restore(held)).containsExactly(1_000_000L);
        assertThat(history.current(List.of(member(900, 0, 0)), Long.MIN_VALUE)).isEqualTo(21);
        assertThat(published(22, 21, 400)).containsExactly(22L);
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
        published(0, 100);
        published(1, 200);

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
        published(0, 100);
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
