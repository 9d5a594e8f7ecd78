package dev.millrace.chaos.fault;

import java.util.Locale;

/**
 * One fault of a schedule.
 *
 * @param number from 1
 * @param target name of a member, of a broker or of a topic without the run's prefix
 * @param seconds how long it lasts; 0 where it is over at once
 * @param seed of its other draws
 */
public record Fault(int number, FaultKind kind, String target, double seconds, long seed) {
    @Override
    public String toString() {
        return kind.word() + " " + target + (seconds > 0 ? String.format(Locale.ROOT, " %.0f s", seconds) : "");
    }
}
