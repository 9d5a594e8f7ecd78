package dev.millrace.generator.staleness;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.rollout.SampleName;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** For any records in any order, and through restarts, the counts equal those of a naive list. */
class ReleasedSamplesTwinTest {
    private static final int GROUP = 3;
    private static final int GROUPS = 12;

    private enum State {
        UNDER_WAY,
        REFUSED,
        LEFT,
        CONSUMED
    }

    /** The same, by going through all there is. */
    private static final class Twin {
        final Map<SampleName, State> samples = new LinkedHashMap<>();
        final TreeMap<Long, List<SampleName>> waiting = new TreeMap<>();
        long settledThrough = -1;

        void release(long ordinal) {
            for (int i = 0; i < GROUP; i++) {
                samples.put(sample(ordinal, i), State.UNDER_WAY);
            }
        }

        void from(SampleName sample, State from, State to) {
            boolean isBatched = waiting.values().stream().anyMatch(names -> names.contains(sample));
            samples.computeIfPresent(sample, (name, state) -> state == from && !isBatched ? to : state);
        }

        void ofGroup(long ordinal, State from, State to) {
            for (int i = 0; i < GROUP; i++) {
                from(sample(ordinal, i), from, to);
            }
        }

        void batched(long id, List<SampleName> names) {
            if (id > settledThrough) {
                names.forEach(name -> from(name, State.REFUSED, State.UNDER_WAY));
                waiting.computeIfAbsent(id, i -> new ArrayList<>())
                        .addAll(names.stream()
                                .filter(name -> samples.get(name) == State.UNDER_WAY)
                                .toList());
            }
        }

        void consumedThrough(long id) {
            while (!waiting.isEmpty() && waiting.firstKey() <= id) {
                settledThrough = waiting.firstKey();
                waiting.pollFirstEntry()
                        .getValue()
                        .forEach(name -> samples.computeIfPresent(
                                name, (n, state) -> state == State.UNDER_WAY ? State.CONSUMED : state));
            }
        }

        long count(State state) {
            return samples.values().stream().filter(state::equals).count();
        }
    }

    private static SampleName sample(long group, int index) {
        return new SampleName("0-" + group, index);
    }

    @Test
    void shouldCountAsAListThatIsGoneThroughWhateverIsSaid() {
        for (int seed = 0; seed < 300; seed++) {
            SplittableRandom random = new SplittableRandom(seed);
            ReleasedSamples real = new ReleasedSamples();
            Twin twin = new Twin();
            Map<String, AdmittedGroup> table = new LinkedHashMap<>();
            long consumed = -1;
            for (int step = 0; step < 200; step++) {
                long group = random.nextInt(GROUPS); // some of them are not released yet
                SampleName name = sample(group, random.nextInt(GROUP + 1)); // or there is no such sample
                switch (random.nextInt(11)) {
                    case 0, 1 -> {
                        long ordinal = real.nextOrdinal();
                        if (ordinal < GROUPS) {
                            real.released(new AdmittedGroup("0-" + ordinal, GROUP, 0, 1), ordinal);
                            twin.release(ordinal);
                        }
                    }
                    case 2 -> {
                        real.left(name);
                        twin.from(name, State.UNDER_WAY, State.LEFT);
                    }
                    case 3 -> {
                        real.refused(name);
                        twin.from(name, State.UNDER_WAY, State.REFUSED);
                    }
                    case 4 -> {
                        real.redriven(name);
                        twin.from(name, State.REFUSED, State.UNDER_WAY);
                    }
                    case 5 -> {
                        real.requestRefused(name.groupId());
                        twin.ofGroup(group, State.UNDER_WAY, State.REFUSED);
                    }
                    case 6 -> {
                        real.requestRedriven(name.groupId());
                        twin.ofGroup(group, State.REFUSED, State.UNDER_WAY);
                    }
                    case 7 -> { // released again, which settles nothing
                        real.quarantined(name);
                        real.markDue(name.groupId());
                        Optional<AdmittedGroup> due = real.takeDue();
                        if (due.isPresent()) {
                            real.releasedAgain(due.get(), 2);
                        }
                    }
                    case 8 -> {
                        long id = consumed + 1 + random.nextInt(3);
                        List<SampleName> names = List.of(name, sample(random.nextInt(GROUPS), random.nextInt(GROUP)));
                        real.batched(new SampleEvent.Batched(id, id, names, List.of()));
                        twin.batched(id, names);
                        real.consumedThrough(consumed); // says nothing new
                        twin.consumedThrough(consumed);
                    }
                    case 9 -> {
                        consumed++;
                        real.consumedThrough(consumed);
                        twin.consumedThrough(consumed);
                    }
                    default -> real = restarted(real, table, twin, consumed);
                }
                assertThat(List.of(real.released(), real.underWay(), real.lost(), real.consumed()))
                        .as("released, under way, lost and consumed by step %s of seed %s", step, seed)
                        .containsExactly(
                                (long) twin.samples.size(),
                                twin.count(State.UNDER_WAY),
                                twin.count(State.LEFT) + twin.count(State.REFUSED),
                                twin.count(State.CONSUMED));
            }
        }
    }

    /** What was written is read again, and the batches that wait for their steps. */
    private static ReleasedSamples restarted(
            ReleasedSamples before, Map<String, AdmittedGroup> table, Twin twin, long consumed) {
        before.takeChanges()
                .forEach((groupId, group) -> group.ifPresentOrElse(
                        kept -> table.put(groupId, new AdmittedGroup(kept.record())), () -> table.remove(groupId)));
        List<AdmittedGroup> kept = table.values().stream()
                .map(group -> new AdmittedGroup(group.record()))
                .toList();
        ReleasedSamples after = new ReleasedSamples(kept, before.counts(Map.of()));
        after.consumedThrough(consumed);
        twin.waiting.forEach((id, names) -> after.batched(new SampleEvent.Batched(id, id, names, List.of())));
        return after;
    }
}
