package dev.millrace.generator.staleness;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.generator.staleness.StalenessController.StalenessCapacity;
import dev.millrace.schemas.rollout.SampleName;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** Groups of 4. */
class ReleasedSamplesTest {
    private final ReleasedSamples samples = new ReleasedSamples();

    private static SampleName sample(long group, int index) {
        return new SampleName("0-" + group, index);
    }

    private void release(long ordinal) {
        samples.released(new AdmittedGroup("0-" + ordinal, 4, 0, 1), ordinal);
    }

    private static SampleEvent.Batched batch(long id, long group) {
        List<SampleName> names = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            names.add(sample(group, i));
        }
        return new SampleEvent.Batched(id, 100 + id, names, List.of());
    }

    @Test
    void shouldSettleASampleOnce() {
        release(0);
        assertThat(samples.left(sample(0, 1))).isTrue();
        assertThat(samples.left(sample(0, 1))).isFalse();
        assertThat(samples.refused(sample(0, 1))).isFalse();
        assertThat(samples.left(sample(1, 0))).as("never released").isFalse();
        assertThat(samples.left(sample(0, 4))).as("a sample too many").isFalse();
        assertThat(samples.requestRefused("0-9")).isZero();
        assertThat(samples.underWay()).isEqualTo(3);
        assertThat(samples.lost()).isEqualTo(1);
        assertThat(samples.unknown()).isEqualTo(5);
    }

    @Test
    void shouldConsumeABatchWhenItsVersionIsThereInWhateverOrderTheTwoAreRead() {
        release(0);
        release(1);
        samples.batched(batch(0, 0));
        assertThat(samples.underWay()).isEqualTo(8);
        assertThat(samples.firstWaitingBatch()).hasValue(100);
        samples.consumedThrough(0);
        assertThat(samples.underWay()).isEqualTo(4);
        samples.consumedThrough(1);
        assertThat(samples.underWay()).isEqualTo(4);
        samples.batched(batch(1, 1));
        assertThat(samples.underWay()).isZero();
        assertThat(samples.consumed()).isEqualTo(8);
        assertThat(samples.firstWaitingBatch()).isEmpty();
    }

    @Test
    void shouldConsumeAStarvedBatchInItsTurn() {
        release(0);
        release(1);
        samples.starved(1);
        samples.batched(batch(0, 0));
        samples.batched(batch(1, 1));
        assertThat(samples.underWay()).isEqualTo(8);
        samples.consumedThrough(0);
        assertThat(samples.underWay()).isZero();
    }

    @Test
    void shouldPassOverACopyOfABatchAndOneFarAhead() {
        for (int group = 0; group < 3; group++) {
            release(group);
        }
        samples.batched(batch(0, 0));
        samples.batched(batch(0, 0)); // a copy
        samples.batched(batch(1_000_000, 1)); // unknown sample
        samples.consumedThrough(0);
        samples.batched(batch(0, 2)); // its id was consumed
        assertThat(samples.underWay()).isEqualTo(8);
        assertThat(samples.unknown()).isEqualTo(2);
        samples.batched(batch(1, 1));
        samples.consumedThrough(1);
        assertThat(samples.underWay()).isEqualTo(4);
    }

    @Test
    void shouldTakeBackWhatWasRefusedWhenItIsRedrivenOrReachesABatch() {
        release(0);
        release(1);
        samples.refused(sample(0, 2));
        assertThat(samples.redriven(sample(0, 2))).isTrue();
        assertThat(samples.redriven(sample(0, 2))).isFalse();
        assertThat(samples.redriven(sample(7, 0))).isFalse();
        assertThat(samples.underWay()).isEqualTo(8);
        samples.left(sample(0, 3));
        assertThat(samples.redriven(sample(0, 3)))
                .as("it left, and was not refused")
                .isFalse();
        samples.refused(sample(1, 0)); // a copy of it, which lay elsewhere
        assertThat(samples.underWay()).isEqualTo(6);
        samples.batched(batch(0, 1));
        assertThat(samples.underWay()).isEqualTo(7);
        samples.consumedThrough(0);
        assertThat(samples.underWay()).isEqualTo(3);
        assertThat(samples.lost()).isEqualTo(1);
    }

    @Test
    void shouldTakeBackAWholeRequest() {
        release(0);
        assertThat(samples.requestRefused("0-0")).isEqualTo(4);
        assertThat(samples.underWay()).isZero();
        samples.requestRedriven("0-0");
        assertThat(samples.underWay()).isEqualTo(4);
        assertThat(samples.lost()).isZero();
    }

    @Test
    void shouldForgetTheOldestOfThoseThatOnlyARedriveCouldBringBack() {
        for (int group = 0; group <= ReleasedSamples.MAX_REFUSED_GROUPS; group++) {
            release(group);
            samples.requestRefused("0-" + group);
        }
        assertThat(samples.redriven(sample(0, 0))).isFalse();
        assertThat(samples.redriven(sample(1, 0))).isTrue();
        Map<String, Optional<AdmittedGroup>> changes = samples.takeChanges();
        assertThat(changes.get("0-0")).isEmpty();
        assertThat(changes.get("0-1")).isPresent();
        assertThat(samples.hasChanges()).isFalse();
    }

    @Test
    void shouldReleaseAgainAtOnceOnlyTheFirstTimeThatItsGeneratorIsInQuarantine() {
        release(0);
        assertThat(samples.quarantined(sample(0, 1))).isTrue();
        assertThat(samples.wasQuarantined("0-0")).as("it is due already").isFalse();
        AdmittedGroup group = samples.takeDue().orElseThrow();
        samples.left(sample(0, 0));
        samples.releasedAgain(group, 2);
        assertThat(samples.releasedAgain()).isEqualTo(3);
        assertThat(samples.quarantined(sample(0, 2))).isTrue();
        assertThat(samples.takeDue()).isEmpty();
        assertThat(samples.wasQuarantined("0-0")).isTrue();
        samples.markDue("0-0");
        samples.releasedAgain(samples.takeDue().orElseThrow(), 3);
        assertThat(samples.wasQuarantined("0-0")).isFalse();
        assertThat(samples.underWay()).isEqualTo(3);
        assertThat(samples.released()).isEqualTo(4);
    }

    @Test
    void shouldNotGiveAwayTheRoomOfASampleThatIsInABatch() {
        release(0);
        samples.batched(batch(0, 0));
        assertThat(samples.left(sample(0, 0))).isFalse();
        assertThat(samples.refused(sample(0, 1))).isFalse();
        assertThat(samples.requestRefused("0-0")).isZero();
        assertThat(samples.underWay()).isEqualTo(4);
        samples.consumedThrough(0);
        assertThat(samples.consumed()).isEqualTo(4);
        assertThat(samples.lost()).isZero();
    }

    @Test
    void shouldKeepWhereARequestLies() {
        release(0);
        samples.takeChanges();
        samples.placed("0-0", 3, 17);
        samples.placed("0-9", 3, 18); // unknown
        AdmittedGroup kept =
                new AdmittedGroup(samples.takeChanges().get("0-0").orElseThrow().record());
        assertThat(kept.partition()).isEqualTo(3);
        assertThat(kept.offset()).isEqualTo(17);
    }

    @Test
    void shouldGoOnWithWhatWasKept() {
        for (int group = 0; group < 3; group++) {
            release(group);
        }
        samples.left(sample(0, 0));
        samples.refused(sample(0, 1));
        samples.batched(batch(0, 2));
        samples.consumedThrough(0);
        samples.starved(2);
        samples.addResample(new ResampleRequest(1, 1));
        List<AdmittedGroup> kept = samples.takeChanges().values().stream()
                .flatMap(Optional::stream)
                .map(group -> new AdmittedGroup(group.record()))
                .toList();

        ReleasedSamples again = new ReleasedSamples(kept, samples.counts(Map.of()));
        assertThat(again.counts(Map.of())).isEqualTo(samples.counts(Map.of()));
        assertThat(again.underWay()).isEqualTo(6);
        assertThat(again.takeResample()).contains(new ResampleRequest(1, 1));
        assertThat(again.redriven(sample(0, 1))).isTrue();
        again.batched(batch(0, 1)); // consumed before the restart
        assertThat(again.underWay()).isEqualTo(7);
    }

    /** Despite forged records of names not in flight, a sample is trained on at most eta versions after its release. */
    @Test
    void shouldBoundStalenessByEtaWhateverIsForged() {
        for (int seed = 0; seed < 50; seed++) {
            SplittableRandom random = new SplittableRandom(seed);
            int eta = random.nextInt(4);
            int batchGroups = 1 + random.nextInt(4);
            ReleasedSamples simulated = new ReleasedSamples();
            StalenessCapacity gate = new StalenessCapacity(eta, 4 * batchGroups, 4);
            Deque<Long> queue = new ArrayDeque<>();
            List<Long> admitted = new ArrayList<>();
            for (long version = 0; version < 60; ) {
                for (long groups = gate.releasableGroups(simulated.underWay()); groups > 0; groups--) {
                    long ordinal = simulated.nextOrdinal();
                    simulated.released(new AdmittedGroup("0-" + ordinal, 4, version, 1), ordinal);
                    admitted.add(version);
                    queue.add(ordinal);
                }
                for (int i = random.nextInt(100); i > 0; i--) { // settled, or never released
                    forge(simulated, queue.peek(), random);
                }
                if (random.nextInt(3) == 0) { // one group is really lost
                    long lost = queue.removeLast();
                    for (int i = 0; i < 4; i++) {
                        simulated.left(sample(lost, i));
                    }
                    continue; // and the next batch waits for its replacement
                }
                List<SampleName> names = new ArrayList<>();
                for (int g = 0; g < batchGroups; g++) {
                    long ordinal = queue.remove();
                    assertThat(version - admitted.get((int) ordinal)).isLessThanOrEqualTo(eta);
                    for (int i = 0; i < 4; i++) {
                        names.add(sample(ordinal, i));
                    }
                }
                simulated.batched(new SampleEvent.Batched(version, version, names, List.of()));
                simulated.consumedThrough(version);
                version++;
            }
            assertThat(simulated.released() - simulated.consumed() - simulated.lost())
                    .isEqualTo(simulated.underWay())
                    .isEqualTo(4L * queue.size());
        }
    }

    private static void forge(ReleasedSamples simulated, long oldestUnderWay, SplittableRandom random) {
        long group = random.nextBoolean() || oldestUnderWay == 0
                ? simulated.nextOrdinal() + random.nextInt(1000)
                : random.nextLong(oldestUnderWay);
        SampleName name = sample(group, random.nextInt(6));
        switch (random.nextInt(5)) {
            case 0 -> simulated.left(name);
            case 1 -> simulated.refused(name);
            case 2 -> simulated.redriven(name);
            case 3 -> simulated.requestRefused(name.groupId());
            default -> simulated.batched(new SampleEvent.Batched(group, 0, List.of(name), List.of()));
        }
    }
}
