package dev.millrace.generator.staleness;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.generator.staleness.LostSamples.ReleaseAges;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

/** A limit of 100 ns, and rollouts on two partitions. */
class ReleaseAgesTest {
    private static final TopicPartition ONE = new TopicPartition("rollouts", 0);
    private static final TopicPartition TWO = new TopicPartition("rollouts", 1);

    private final ReleaseAges ages = new ReleaseAges(Duration.ofNanos(100));
    private final AdmittedGroup first = group("0-0");
    private final AdmittedGroup second = group("0-1");

    private static AdmittedGroup group(String groupId) {
        return new AdmittedGroup(groupId, 4, 0, 1);
    }

    @Test
    void shouldFindWhatHasBeenUnderWayForTooLongSinceItsNewestRelease() {
        assertThat(ages.overdue(List.of(first), 1_000)).isEmpty();
        assertThat(ages.overdue(List.of(first, second), 1_099)).isEmpty();
        assertThat(ages.overdue(List.of(first, second), 1_100)).containsExactly(first);
        first.releasedAgain(5); // independent of the wall clock
        assertThat(ages.overdue(List.of(first, second), 1_150)).isEmpty();
        assertThat(ages.overdue(List.of(first, second), 1_249)).containsExactly(second);
        assertThat(ages.overdue(List.of(first), 1_250)).containsExactly(first);
    }

    @Test
    void shouldLookEachTimeAfterTwiceAsLongForWhatWasFound() {
        ages.overdue(List.of(first), 0);
        assertThat(ages.overdue(List.of(first), 100)).containsExactly(first);
        ages.looked("0-0", true, 100);
        assertThat(ages.overdue(List.of(first), 299)).isEmpty();
        assertThat(ages.overdue(List.of(first), 300)).containsExactly(first);
        ages.looked("0-0", true, 300);
        assertThat(ages.overdue(List.of(first), 699)).isEmpty();
        assertThat(ages.overdue(List.of(first), 700)).containsExactly(first);
        ages.looked("0-0", false, 700); // it still waits for its generator
        assertThat(ages.overdue(List.of(first), 800)).containsExactly(first);
    }

    @Test
    void shouldKnowFromWhereOnRolloutsLie() {
        ages.begin(Map.of(ONE, 7L));
        ages.overdue(List.of(first), 0);
        ages.ended(Map.of(ONE, 20L, TWO, 30L));
        ages.overdue(List.of(first), 10); // later releases have their rollouts after these
        ages.ended(Map.of(ONE, 21L, TWO, 31L));
        ages.overdue(List.of(first, second), 20);
        assertThat(ages.floorOf("0-0")).isEqualTo(Map.of(ONE, 7L));
        assertThat(ages.floorOf("0-1")).isEqualTo(Map.of(ONE, 20L, TWO, 30L));
        assertThat(ages.floor()).as("of both, and of the next").isEqualTo(Map.of(ONE, 7L));
        second.releasedAgain(5);
        ages.overdue(List.of(second), 30);
        assertThat(ages.floor()).isEqualTo(Map.of(ONE, 20L, TWO, 30L));
        ages.overdue(List.of(), 40);
        assertThat(ages.floor()).isEqualTo(Map.of(ONE, 21L, TWO, 31L));
    }

    @Test
    void shouldLookFurtherDownWhereTheLogHasLostItsEnd() {
        ages.ended(Map.of(ONE, 20L, TWO, 30L));
        ages.overdue(List.of(), 0);
        ages.overdue(List.of(first), 10);
        assertThat(ages.floorOf("0-0")).isEqualTo(Map.of(ONE, 20L, TWO, 30L));
        ages.ended(Map.of(ONE, 12L, TWO, 40L));
        assertThat(ages.floorOf("0-0")).isEqualTo(Map.of(ONE, 12L, TWO, 30L));
        ages.overdue(List.of(first, second), 20);
        assertThat(ages.floorOf("0-1")).isEqualTo(Map.of(ONE, 12L, TWO, 30L));
    }
}
