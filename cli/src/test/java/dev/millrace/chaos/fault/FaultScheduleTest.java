package dev.millrace.chaos.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class FaultScheduleTest {
    private static final Map<FaultKind.Target, List<String>> TARGETS = Map.of(
            FaultKind.Target.MEMBER, List.of("learner", "scorer", "generator-0"),
            FaultKind.Target.NETWORK, List.of("broker-1"));
    private static final Set<FaultKind> KINDS = EnumSet.of(FaultKind.KILL, FaultKind.PAUSE, FaultKind.NETWORK_CUT);

    @Test
    void shouldDrawTheSameFaultsFromTheSameSeed() {
        assertThat(drawn(7, 60)).isEqualTo(drawn(7, 60)).isNotEqualTo(drawn(8, 60));
    }

    @Test
    void shouldDrawEveryKindAsOftenAsItsWeightSaysInEveryRound() {
        int round = KINDS.stream().mapToInt(FaultKind::weight).sum();

        List<Fault> faults = drawn(3, 2 * round);

        for (FaultKind kind : KINDS) {
            assertThat(faults.subList(0, round))
                    .filteredOn(fault -> fault.kind() == kind)
                    .hasSize(kind.weight());
            assertThat(faults.subList(round, 2 * round))
                    .filteredOn(fault -> fault.kind() == kind)
                    .hasSize(kind.weight());
        }
    }

    @Test
    void shouldAimEachKindAtWhatItIsMadeForAndLastWithinItsBounds() {
        assertThat(drawn(5, 100)).allSatisfy(fault -> {
            assertThat(TARGETS.get(fault.kind().target())).contains(fault.target());
            assertThat(fault.seconds())
                    .isBetween(fault.kind().leastSeconds(), fault.kind().mostSeconds());
        });
    }

    @Test
    void shouldTakeTheEndOfEachTopicInTurn() {
        List<String> topics = List.of("prompts", "rollouts", "scores", "batches");
        FaultSchedule schedule =
                new FaultSchedule(4, Set.of(FaultKind.TAIL_LOST), Map.of(FaultKind.Target.LOG, topics));

        for (int round = 0; round < 3; round++) {
            assertThat(IntStream.range(0, topics.size())
                            .mapToObj(i -> schedule.next().target()))
                    .containsExactlyInAnyOrderElementsOf(topics);
        }
    }

    @Test
    void shouldRefuseAKindForWhichNothingIsThere() {
        assertThatThrownBy(() -> new FaultSchedule(1, Set.of(FaultKind.DISK_FULL), TARGETS))
                .hasMessage("nothing is there that disk-full could be done to");
        assertThatThrownBy(() -> new FaultSchedule(1, Set.of(), TARGETS))
                .hasMessageStartingWith("a schedule needs at least one kind of fault");
    }

    @Test
    void shouldFindEachKindByItsWord() {
        assertThat(FaultKind.of("broker-kill")).contains(FaultKind.BROKER_KILL);
        assertThat(FaultKind.of("broker_kill")).isEmpty();
        assertThat(FaultKind.allWords()).doesNotHaveDuplicates().hasSize(FaultKind.values().length);
    }

    private static List<Fault> drawn(long seed, int count) {
        FaultSchedule schedule = new FaultSchedule(seed, KINDS, TARGETS);
        return IntStream.range(0, count).mapToObj(i -> schedule.next()).toList();
    }
}
