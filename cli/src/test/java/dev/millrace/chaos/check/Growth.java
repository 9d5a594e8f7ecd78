package dev.millrace.chaos.check;

import dev.millrace.chaos.observe.Holdings;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;

/**
 * Allowed growth of a process's memory from the first to the last third of a run: the variation by connections and garbage
 * collection.
 *
 * <p>Live heaps of several brokers are compared together: what one holds follows from the partitions and the groups that it leads, and
 * these go to others whenever one is away.
 *
 * @param share of the first figure
 * @param slack on top
 */
record Growth(double share, double slack) {
    /** Objects that cannot be let go of, MB. */
    static final Growth LIVE_HEAP = new Growth(0.1, 4);
    /** Resident memory, MB, in which a heap that is collected less often is not a leak. */
    static final Growth RESIDENT = new Growth(0.25, 64);
    /** Threads and handles. */
    static final Growth COUNT = new Growth(0.3, 32);

    private boolean isBeyond(double first, double last) {
        return last > first * (1 + share) + slack;
    }

    private void look(String what, double first, double last, List<String> grown) {
        if (isBeyond(first, last)) {
            grown.add(String.format(
                    Locale.ROOT,
                    "%s from %.0f to %.0f, %.0f is the bound",
                    what,
                    first,
                    last,
                    first * (1 + share) + slack));
        }
    }

    /** What has grown beyond its bound, in words. */
    static List<String> of(List<Holdings.Change> changes) {
        List<String> grown = new ArrayList<>();
        for (Holdings.Change change : changes) {
            String member = change.member();
            COUNT.look(
                    member + " threads", change.first().threads(), change.last().threads(), grown);
            COUNT.look(
                    member + " handles", change.first().handles(), change.last().handles(), grown);
            RESIDENT.look(
                    member + " MB resident",
                    change.first().residentMegabytes(),
                    change.last().residentMegabytes(),
                    grown);
        }
        List<Holdings.Change> brokers =
                changes.stream().filter(change -> isBroker(change.member())).toList();
        changes.stream()
                .filter(change -> brokers.size() < 2 || !isBroker(change.member()))
                .forEach(change -> liveHeap(change.member(), List.of(change), grown));
        if (brokers.size() > 1) {
            liveHeap("brokers' together", brokers, grown);
        }
        return grown;
    }

    private static boolean isBroker(String member) {
        return member.startsWith("broker-");
    }

    private static void liveHeap(String what, List<Holdings.Change> of, List<String> grown) {
        List<Holdings.Live> live =
                of.stream().map(Holdings.Change::live).filter(Objects::nonNull).toList();
        if (live.size() == of.size()) {
            LIVE_HEAP.look(
                    what + " MB of live heap",
                    live.stream().mapToDouble(Holdings.Live::firstMegabytes).sum(),
                    live.stream().mapToDouble(Holdings.Live::lastMegabytes).sum(),
                    grown);
        }
    }
}
