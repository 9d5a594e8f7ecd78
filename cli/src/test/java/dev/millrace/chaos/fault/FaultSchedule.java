package dev.millrace.chaos.fault;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;

/**
 * An endless series of faults that a seed decides; how many of them are done is a matter of time.
 *
 * <p>The kinds come in rounds: in each, every kind stands as often as its weight says, in an order drawn anew, so that a short run
 * sees many kinds and a long one each often.
 */
public final class FaultSchedule {
    private final SplittableRandom random;
    private final Set<FaultKind> kinds;
    private final Map<FaultKind.Target, List<String>> targets;
    private final ArrayDeque<FaultKind> round = new ArrayDeque<>();
    private final Map<FaultKind.Target, ArrayDeque<String>> turns = new EnumMap<>(FaultKind.Target.class);
    private int drawn;

    /**
     * @param kinds at least one
     * @param targets the names that each kind of target has
     */
    public FaultSchedule(long seed, Collection<FaultKind> kinds, Map<FaultKind.Target, List<String>> targets) {
        if (kinds.isEmpty()) {
            throw new IllegalArgumentException("a schedule needs at least one kind of fault: " + kinds);
        }
        this.random = new SplittableRandom(seed);
        this.kinds = EnumSet.copyOf(kinds);
        this.targets = Map.copyOf(targets);
        for (FaultKind kind : kinds) {
            if (targets.getOrDefault(kind.target(), List.of()).isEmpty()) {
                throw new IllegalArgumentException("nothing is there that " + kind.word() + " could be done to");
            }
        }
    }

    /** The next one. */
    public Fault next() {
        if (round.isEmpty()) {
            List<FaultKind> all = new ArrayList<>();
            kinds.forEach(kind -> all.addAll(Collections.nCopies(kind.weight(), kind)));
            shuffle(all);
            round.addAll(all);
        }
        FaultKind kind = round.removeFirst();
        return new Fault(
                ++drawn,
                kind,
                target(kind.target()),
                kind.mostSeconds() == 0 ? 0 : random.nextDouble(kind.leastSeconds(), kind.mostSeconds()),
                random.nextLong());
    }

    private void shuffle(List<?> all) {
        for (int i = all.size() - 1; i > 0; i--) {
            Collections.swap(all, i, random.nextInt(i + 1));
        }
    }

    private String target(FaultKind.Target target) {
        List<String> of = targets.getOrDefault(target, List.of());
        if (!target.isInTurn()) {
            return of.get(random.nextInt(of.size()));
        }
        ArrayDeque<String> turn = turns.computeIfAbsent(target, none -> new ArrayDeque<>());
        if (turn.isEmpty()) {
            List<String> all = new ArrayList<>(of);
            shuffle(all);
            turn.addAll(all);
        }
        return turn.removeFirst();
    }
}
