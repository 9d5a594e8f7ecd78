package dev.millrace.topology.state;

import dev.millrace.topology.Fingerprint;

/** One thing that happened to a task, in the order in which it happened. */
public sealed interface TaskEvent {

    /** So many records of one input arrived, one behind the other. */
    record Arrivals(int input, long count) implements TaskEvent {}

    /** A record of an input arrived, and what it said. */
    record Told(int input, long... facts) implements TaskEvent {}

    /**
     * Nothing arrived for a while.
     *
     * @param countedMs how much of it counts as activity
     * @param wallClockMs the time at its end
     */
    record Idled(long countedMs, long wallClockMs) implements TaskEvent {}

    /**
     * The task began on what its stores held: a start, a restart, or a move to another instance.
     *
     * @param settings by which it decides; their text is in the same sighting, or in an earlier one of the task
     */
    record Began(Fingerprint settings) implements TaskEvent {}

    /** As {@link Began}, by the same settings as the beginning before. */
    record BeganAgain() implements TaskEvent {}

    /** What happened here was too much to be kept; from here on nothing can be proved. */
    record Lost() implements TaskEvent {}
}
